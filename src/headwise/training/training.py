"""How to train, as data."""

from typing import Literal

from headwise.core.errors import require
from headwise.core.spec import spec

Loss = Literal["mse", "cross-entropy"]


@spec
class Training:
    """AdamW with linear warm-up and a cosine to zero, on standardised data.

    `samples` is the size of the fixed training set, drawn from `data_seed` and shared by all
    seeds, or 0 for a fresh stream of its own for every seed. Validation data are always drawn
    from `data_seed`, disjoint from any training stream.
    """

    steps: int
    rate: float
    batch: int = 32
    warmup: float = 0.02
    weight_decay: float = 0.0
    clip: float = 1.0
    samples: int = 8000
    validation: int = 2000
    evaluations: int = 40
    data_seed: int = 0
    loss: Loss = "mse"

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "validation", "evaluations"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(self.rate > 0, f"the learning rate is {self.rate}; it must be positive")
        require(0 <= self.warmup < 1, "warmup is a fraction of the steps, from 0 up to 1")
        require(self.weight_decay >= 0, "weight_decay is not negative")
        require(self.clip > 0, "clip, the largest gradient norm, is positive")
        require(self.samples >= 0, "samples is a number of sequences, or 0 for a fresh stream")
        require(
            self.samples == 0 or self.batch <= self.samples,
            f"a batch of {self.batch} is larger than the training set of {self.samples}",
        )
        require(self.loss in ("mse", "cross-entropy"), "loss is 'mse' or 'cross-entropy'")
