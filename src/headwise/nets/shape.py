"""The shapes of the parts that networks are made of, as data."""

from typing import Literal

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec


@spec
class AttentionShape:
    """One attention layer: `heads` heads, each with its query–key rank and value dimension."""

    heads: int
    qk_dim: int
    v_dim: int

    def __post_init__(self) -> None:
        for name in ("heads", "qk_dim", "v_dim"):
            check_whole(getattr(self, name), name, 1)


@spec
class MLPShape:
    """Hidden widths, input side first, and the activation between layers."""

    widths: tuple[int, ...]
    activation: Literal["relu", "gelu"]

    def __post_init__(self) -> None:
        require(
            all(width >= 1 for width in self.widths), "the width of a hidden layer is at least 1"
        )
        require(self.activation in ("relu", "gelu"), "an activation is 'relu' or 'gelu'")
