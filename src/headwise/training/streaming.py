"""How to train on data that never repeat, as data."""

from headwise.core.errors import require
from headwise.core.spec import spec


@spec
class Streaming:
    """AdamW with linear warm-up and a cosine to zero, every batch fresh.

    The defaults are the rank paper's: betas (.9, .95), no weight decay, 5 % warm-up, no clipping
    of gradients. The score is taken on `validation` sequences of `data_seed`, which no training
    stream ever contains, at `evaluations` points of the training.
    """

    steps: int
    rate: float
    batch: int = 256
    warmup: float = 0.05
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    validation: int = 4096
    evaluations: int = 20
    data_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "validation", "evaluations"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(self.rate > 0, f"the learning rate is {self.rate}; it must be positive")
        require(0 <= self.warmup < 1, "warmup is a fraction of the steps, from 0 up to 1")
        require(
            len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
            "betas are two numbers from 0 up to 1",
        )
        require(self.weight_decay >= 0, "weight_decay is not negative")
