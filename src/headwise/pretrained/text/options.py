"""What a user may say of the calibration, checked before a model is opened."""

from headwise.core.errors import require
from headwise.pretrained.measure.objectives import POOLS
from headwise.pretrained.text.calibration import SHORTEST


def check_options(
    *, tokens: int, length: int | None, pool: str | None, memory: float | None, seed: int
) -> None:
    """Refuse what no model could be measured with."""
    require(tokens > 0, f"tokens is {tokens}; calibration needs some")
    require(
        length is None or length >= SHORTEST,
        f"length is {length}; an input has at least {SHORTEST} tokens",
    )
    require(seed >= 0, f"seed is {seed}; it is a whole number, 0 or more")
    require(pool is None or pool in POOLS, f"pool is {pool!r}; known are {', '.join(POOLS)}")
    require(
        memory is None or memory > 0, f"memory is {memory}; it is a number of gigabytes above 0"
    )
