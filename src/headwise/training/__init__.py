"""Many models in one program; one seed, one result."""

from headwise.training.loop import Outcome, train
from headwise.training.training import Training

__all__ = ["Outcome", "Training", "train"]
