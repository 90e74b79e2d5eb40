"""What a user may say of the calibration, checked before a model is opened."""

from headwise.core.errors import check_whole, require
from headwise.pretrained.measure.objectives import POOLS
from headwise.pretrained.text.calibration import SHORTEST


def check_options(
    *, tokens: int, length: int | None, pool: str | None, memory: float | None, seed: int
) -> None:
    """Refuse what no model could be measured with."""
    check_whole(tokens, "tokens", 1)
    if length is not None:
        check_whole(length, "length", SHORTEST)
    check_whole(seed, "seed", 0)
    require(pool is None or pool in POOLS, f"pool is {pool!r}; known are {', '.join(POOLS)}")
    require(
        memory is None or memory > 0, f"memory is {memory}; it is a number of gigabytes above 0"
    )
