"""Grouped heads: several query heads share a key and a value map (grouped-query, multi-query).

o_i = softmax(q_i·K_{g(i)}ᵀ/√n) V_{g(i)},   g(i) = ⌊i·groups/heads⌋

One group is multi-query attention (arXiv 1911.02150), as many groups as heads plain attention
(arXiv 2305.13245).
"""

from dataclasses import dataclass
from typing import ClassVar

from headwise.core.errors import require
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant


@dataclass(frozen=True)
class GroupedHeads(Variant):
    """`groups` key and value maps, shared evenly by the query heads; 1 is multi-query."""

    groups: int = 1
    title: ClassVar[str] = "grouped"

    def check(self, layer: AttentionShape) -> None:
        """Every group has as many heads."""
        require(
            1 <= self.groups <= layer.heads and layer.heads % self.groups == 0,
            f"{layer.heads} heads cannot share {self.groups} groups evenly",
        )

    def maps(self, layer: AttentionShape) -> tuple[int, int, int]:
        """A query map a head, a key and a value map a group."""
        return layer.heads, self.groups, self.groups
