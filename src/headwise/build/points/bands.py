"""Theorem 3's target of the rank paper as a task, and its layer of O(dim²) full-rank heads.

See `headwise.theory.rank.bands`: the answer is one of two points by the parity of the band that
⟨x_1 − x_2, y⟩ lies in. Head k with Q = K = I, bias −θ_k for the first point, hard attention and
value (−1)^(k+1)·I is the k-th biased nearest neighbour.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets import AttentionNet, AttentionNetShape, AttentionShape
from headwise.tasks import Neighbours
from headwise.tasks.protocols import LastTokenAnswers
from headwise.theory.checks import whole
from headwise.theory.rank.bands import LARGEST_DIM, band_thresholds


@spec
class BandedNeighbour(LastTokenAnswers):
    """Two orthogonal points and a Gaussian query; equal fields, equal data, on any machine."""

    dim: int

    def __post_init__(self) -> None:
        whole("dim", self.dim, least=2, most=LARGEST_DIM)

    @property
    def length(self) -> int:
        """Tokens in a sequence: two points and the query."""
        return 3

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.dim

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count 3 dim"], Float[Tensor, "count 1 dim"]]:
        """`count` sequences and the right answers."""
        base = Neighbours(dim=self.dim, points=2, sampler="orthogonal", queries="gaussian")
        tokens, _ = base.sample(count, seed)
        return tokens, self.oracle(tokens)

    def oracle(self, tokens: Float[Tensor, "batch 3 dim"]) -> Float[Tensor, "batch 1 dim"]:
        """The exact answers."""
        first, second, query = tokens.double().unbind(1)
        where = ((first - second) * query).sum(1)
        passed = torch.searchsorted(torch.from_numpy(band_thresholds(self.dim)), where)
        return torch.where(passed[:, None] % 2 == 1, tokens[:, 0], tokens[:, 1]).unsqueeze(1)


def banded_layer(dim: int) -> AttentionNet:
    """2·dim² + 1 hard heads of full rank with biases, which answer `BandedNeighbour(dim)`."""
    thresholds = band_thresholds(dim)
    heads = len(thresholds)
    require(heads * dim**2 * 8 <= 2**31, f"{heads:,} heads of dimension {dim} do not fit in 2 GiB")
    shape = AttentionNetShape(
        token_dim=dim,
        outputs=dim,
        layer=AttentionShape(heads=heads, qk_dim=dim, v_dim=dim),
        kind="hardmax",
        values="scalar",
        position_bias=2,
        scaled=False,
    )
    identity = torch.eye(dim).repeat(heads, 1)
    bias = torch.zeros(heads, 2)
    bias[:, 0] = -torch.from_numpy(thresholds).float()
    signs = torch.from_numpy(np.where(np.arange(heads) % 2 == 0, 1.0, -1.0)).float()
    params = {
        "query.weight": identity,
        "key.weight": identity,
        "position_bias": bias,
        "mix": signs,
    }
    return AttentionNet(shape, params)
