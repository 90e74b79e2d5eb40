"""Which engine trains a specification, and why."""

from collections.abc import Sequence

from torch import Tensor

from headwise.nets.shape import ClassTokenShape
from headwise.train.engine import Engine
from headwise.train.stacked import LANES, StackedEngine
from headwise.train.training import Training


def make_engine(
    shape: ClassTokenShape,
    training: Training,
    params: Sequence[dict[str, Tensor]],
    seeds: Sequence[int],
    device: str = "cpu",
) -> tuple[Engine, str]:
    """The fastest engine that covers the specification, and the reason for the choice."""
    lanes = [seed % LANES for seed in seeds]
    return StackedEngine(shape, training, params, lanes, device), "the only engine"


def runs_together(shape: ClassTokenShape, training: Training) -> int:
    """How many seeds of a specification are best trained as one job."""
    return LANES
