"""Sliding-window heads: every head sees the last `size` tokens and no others.

o_i = softmax over t with distance(t) < size of q_i·k_i(t)/√n

A token's distance to itself is 0. The class token, which stands behind the last token, sees the
last `size` of the sequence. (Mistral 7B, arXiv 2310.06825.)
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Int
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant


@dataclass(frozen=True)
class WindowedHeads(Variant):
    """Heads that see the last `size` tokens."""

    size: int = 16
    title: ClassVar[str] = "window"

    def check(self, layer: AttentionShape) -> None:
        """A window holds a token at least."""
        require(self.size >= 1, "a window holds at least 1 token")

    def visible(
        self, distance: Int[Tensor, "asking keys"], longest: int, heads: int
    ) -> Bool[Tensor, "heads asking keys"] | None:
        """Tokens nearer than the window's size, and the class token."""
        return (distance < self.size).expand(heads, -1, -1)
