"""Heads of rank dim − 1 that find the nearer of two orthogonal points exactly.

The proof is in `headwise.theory.rank.nearly_full`. Head i reads all coordinates of the points but
number i, and the whole query; it averages the sign of ⟨w, y⟩ over the signs of w's coordinates up
to i, each before i with the sign itself as a factor, and takes |w_i| from |w| = 1. Of points
that are orthonormal only up to single precision a sign near 0 may turn, which costs about 2^−dim.
"""

from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.theory.checks import shown, whole

_ORTHONORMAL = 1e-4  # as single precision is, with room
MOST_DIM = 12
"""A head of the last coordinate averages 2^dim signs."""


@dataclass(frozen=True)
class NearlyFullRankLayer:
    """dim + 1 attention heads of rank dim − 1; call it on two points and a query."""

    dim: int

    @property
    def heads(self) -> int:
        """How many there are; the last has equal weights."""
        return self.dim + 1

    def head_weights(
        self, seen: Float[Tensor, "batch 2 seen"], query: Float[Tensor, "batch dim"], head: int
    ) -> Float[Tensor, "batch 2"]:
        """The weights of the two points; `seen` are their coordinates without number `head`."""
        if head == self.dim:
            return torch.full(seen.shape[:2], 0.5, dtype=torch.float64)
        part = (seen[:, 0] - seen[:, 1]).double() / 2**0.5
        hidden = (1 - part.square().sum(1)).clamp_min(0).sqrt()  # |w_i|
        before, after = part[:, :head], part[:, head:]
        y = query.double()
        signs = torch.tensor(
            list(product((1.0, -1.0), repeat=head + 1)), dtype=torch.float64
        )  # (patterns, head + 1)
        terms = torch.cat([before, hidden[:, None]], 1) * y[:, : head + 1]
        rest = (after * y[:, head + 1 :]).sum(1, keepdim=True)
        found = torch.sign(terms @ signs.T + rest)  # (batch, patterns)
        parity = (found * signs[:, :head].prod(1)).mean(1)
        return torch.stack([(1 + parity) / 2, (1 - parity) / 2], 1)

    def __call__(self, tokens: Float[Tensor, "batch 3 dim"]) -> Float[Tensor, "batch 1 dim"]:
        """The nearer point: tokens are the two points and then the query."""
        require(
            isinstance(tokens, Tensor) and tokens.ndim == 3 and tokens.shape[1:] == (3, self.dim),
            f"tokens are a tensor, a row two points and a query of {self.dim} numbers, not "
            f"{tuple(tokens.shape) if isinstance(tokens, Tensor) else shown(tokens)}",
        )
        points, query = tokens[:, :2].double(), tokens[:, 2]
        off = (points @ points.mT - torch.eye(2).double()).abs()
        require(
            bool((off <= _ORTHONORMAL).all() and query.isfinite().all()),
            "the layer is exact for two orthogonal points of length one and a finite query, which "
            "these tokens are not",
        )
        total = torch.zeros(len(tokens), self.dim, dtype=torch.float64)
        for head in range(self.heads):
            kept = [c for c in range(self.dim) if c != head]
            seen = points[:, :, kept] if head < self.dim else points[:, :, 1:]
            weights = self.head_weights(seen, query, head)
            value = 1.0 if head < self.dim else -(self.dim - 1.0)
            total += value * torch.einsum("bp,bpd->bd", weights, points)
        return total.unsqueeze(1)


def nearly_full_rank_layer(dim: int) -> NearlyFullRankLayer:
    """The layer; its dimension is even, and at most `MOST_DIM`."""
    dim = whole("dim", dim, least=2, most=MOST_DIM)
    require(dim % 2 == 0, f"the construction is exact in even dimensions, not in {dim}")
    return NearlyFullRankLayer(dim)
