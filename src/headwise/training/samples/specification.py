"""How to train on sequences held in memory, as data."""

from typing import Literal

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.training.schedule import RateSchedule, check_schedule

Loss = Literal["mse", "cross-entropy"]


@spec
class Training(RateSchedule):
    """AdamW with linear warm-up and a cosine to zero, on standardised data.

    `samples` is the size of the fixed training set, drawn from `data_seed` and shared by all
    seeds, or 0 for a fresh stream of its own for every seed. Validation data are always drawn
    from `data_seed`, disjoint from any training stream.
    """

    batch: int = 32
    warmup: float = 0.02
    clip: float = 1.0
    samples: int = 8000
    validation: int = 2000
    evaluations: int = 40
    data_seed: int = 0
    loss: Loss = "mse"

    def __post_init__(self) -> None:
        check_schedule(self)
        require(self.validation >= 1, f"validation is {self.validation}; the least is 1")
        require(self.clip > 0, "clip, the largest gradient norm, is positive")
        require(self.samples >= 0, "samples is a number of sequences, or 0 for a fresh stream")
        require(
            self.samples == 0 or self.batch <= self.samples,
            f"a batch of {self.batch} is larger than the training set of {self.samples}",
        )
        require(self.loss in ("mse", "cross-entropy"), "loss is 'mse' or 'cross-entropy'")
