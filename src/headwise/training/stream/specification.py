"""How to train on data that never repeat, as data."""

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.training.schedule import RateSchedule, check_betas, check_schedule


@spec
class Streaming(RateSchedule):
    """AdamW with linear warm-up and a cosine to zero, every batch fresh.

    The defaults are the rank paper's: betas (.9, .95), no weight decay, 5 % warm-up, no clipping
    of gradients. The score is taken on `validation` sequences of `data_seed`, which no training
    stream ever contains, at `evaluations` points of the training.
    """

    batch: int = 256
    warmup: float = 0.05
    betas: tuple[float, float] = (0.9, 0.95)
    validation: int = 4096
    evaluations: int = 20
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_schedule(self)
        check_betas(self.betas)
        require(self.validation >= 1, f"validation is {self.validation}; the least is 1")
