"""Banded heads (SPAttention, arXiv 2511.09596): each head sees its own range of distances.

o_i = softmax over t with distance(t) ∈ [b·N/B, (b+1)·N/B) of q_i·k_i(t)/√n,   b = i mod B

N is the longest sequence and B the number of bands; the paper's has a band a head, B = heads.
Heads of the class-token network, whose query stands behind the last token, have their own ranges of
positions. A head that finds no key in its band (early in a causal sequence) gives zero.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant


@dataclass(frozen=True)
class BandedHeads(Variant):
    """Head i sees band i mod `bands` of the distances; 0 bands: a band a head, as in the paper."""

    bands: int = 0
    title: ClassVar[str] = "banded"

    def check(self, layer: AttentionShape) -> None:
        """Every band has a head."""
        require(
            self.bands <= layer.heads,
            f"{self.bands} bands need as many heads or more, not {layer.heads}",
        )

    def visible(
        self, distance: Int[Tensor, "asking keys"], longest: int, heads: int
    ) -> Bool[Tensor, "heads asking keys"] | None:
        """A head's own band, and the class token."""
        bands = self.bands or heads
        require(bands <= longest, f"{bands} bands need as many tokens or more, not {longest}")
        own = torch.arange(heads, device=distance.device)[:, None, None] % bands
        return (distance * bands // longest == own) | (distance < 0)
