"""Top-k sparse heads: softmax over the k largest scores alone (arXiv 1912.11637).

o_i = Σ_{t ∈ top-k of s_i} softmax(s_i)_t v_i(t),   s_i(t) = q_i·k_i(t)/√n

The class token counts as a key like any other; keys that tie with the k-th stay.
"""

from dataclasses import dataclass
from typing import ClassVar

from headwise.core.errors import require
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant


@dataclass(frozen=True)
class TopKHeads(Variant):
    """Heads that keep the `kept` keys of the largest scores."""

    kept: int = 4
    title: ClassVar[str] = "top-k"

    def check(self, layer: AttentionShape) -> None:
        """A head keeps a key at least."""
        require(self.kept >= 1, "top-k attention keeps at least 1 key")

    def strongest(self) -> int:
        """k."""
        return self.kept
