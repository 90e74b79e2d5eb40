"""Many models in one program; one seed, one result."""

from headwise.train.loop import Outcome, train
from headwise.train.training import Training

__all__ = ["Outcome", "Training", "train"]
