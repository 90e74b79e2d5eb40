"""How to train a network that chooses one of several answers, as data."""

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.training.schedule import RateSchedule, check_betas, check_schedule


@spec
class ChoiceTraining(RateSchedule):
    """AdamW with linear warm-up and a cosine to zero, on cross-entropy, in shuffled epochs.

    `clip` is the largest norm of a gradient. The score is the share of training examples that are
    answered wrongly at the end, without dropout; held-out examples are scored beside them.
    """

    batch: int = 32
    warmup: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    evaluations: int = 1

    def __post_init__(self) -> None:
        check_schedule(self)
        check_betas(self.betas)
        require(self.clip > 0, "clip, the largest gradient norm, is positive")
