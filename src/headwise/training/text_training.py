"""How to train a decoder on a text, as data."""

from headwise.core.errors import require
from headwise.core.spec import spec


@spec
class TextTraining:
    """AdamW with linear warm-up and a cosine to zero, on windows drawn at random from the text.

    `clip` is the largest norm of a gradient. The score is the mean cross-entropy over `validation`
    windows of the held-out text, evenly spaced, or over all (0), at `evaluations` points of the
    training; the last counts, so nothing is chosen by it.
    """

    steps: int
    rate: float
    batch: int = 16
    warmup: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    clip: float = 1.0
    validation: int = 0
    evaluations: int = 4

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "evaluations"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(self.rate > 0, f"the learning rate is {self.rate}; it must be positive")
        require(0 <= self.warmup < 1, "warmup is a fraction of the steps, from 0 up to 1")
        require(
            len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
            "betas are two numbers from 0 up to 1",
        )
        require(self.weight_decay >= 0, "weight_decay is not negative")
        require(self.clip > 0, "clip, the largest gradient norm, is positive")
        require(self.validation >= 0, "validation is a number of windows, or 0 for all")
