"""How to train a decoder on a text, as data."""

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.training.schedule import RateSchedule, check_betas, check_schedule


@spec
class TextTraining(RateSchedule):
    """AdamW with linear warm-up and a cosine to zero, on windows drawn at random from the text.

    `clip` is the largest norm of a gradient. The score is the mean cross-entropy over `validation`
    windows of the held-out text, evenly spaced, or over all (0), at `evaluations` points of the
    training; the last counts, so nothing is chosen by it.
    """

    batch: int = 16
    warmup: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    validation: int = 0
    evaluations: int = 4

    def __post_init__(self) -> None:
        check_schedule(self)
        check_betas(self.betas)
        require(self.clip > 0, "clip, the largest gradient norm, is positive")
        require(self.validation >= 0, "validation is a number of windows, or 0 for all")
