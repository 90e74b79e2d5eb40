"""Differential attention (arXiv 2410.05258): a head is the difference of two softmax maps.

o_i = [softmax(Q₁,i K₁,iᵀ/√n) − λ softmax(Q₂,i K₂,iᵀ/√n)] V_i

    λ = exp(λ_q1·λ_k1) − exp(λ_q2·λ_k2) + λ_init,   λ_init = 0.8 − 0.6 e^{−0.3(l−1)} in layer l

One λ a layer, two maps and one value map a head. The paper normalises each head's output and
multiplies it by 1 − λ_init; here that is left out, as the networks of the studies have no norms,
so that λ = 0 is plain attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headwise.nets.layers import ParameterShapes, Params
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant

_SPREAD = 0.1  # standard deviation of λ's vectors at the start, the paper's


@dataclass(frozen=True)
class DifferentialHeads(Variant):
    """Heads of two maps each: query and key map i, and i + heads that is subtracted."""

    title: ClassVar[str] = "differential"

    def maps(self, layer: AttentionShape) -> tuple[int, int, int]:
        """Two query and two key maps a head, one value map."""
        return 2 * layer.heads, 2 * layer.heads, layer.heads

    def readers(self, layer: AttentionShape) -> Sequence[tuple[int, ...]]:
        """Both maps of a head enter its output."""
        return [(head,) for head in range(layer.heads)] * 2

    def extra_shapes(self, layer: AttentionShape, width: int) -> ParameterShapes:
        """λ_q1, λ_k1, λ_q2, λ_k2."""
        return {"lambda": (4, layer.qk_dim)}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """Gaussian vectors, as in the paper."""
        return _SPREAD * rng.standard_normal(size)

    def combine(
        self, params: Params, name: str, weights: Float[Tensor, "members #batch maps asking keys"]
    ) -> Float[Tensor, "members #batch heads asking keys"]:
        """The first map minus λ times the second."""
        first, second = weights.chunk(2, 2)
        return first - second * self.subtracted(params, name)[:, None, None, None, None]

    def subtracted(self, params: Params, name: str) -> Float[Tensor, " members"]:
        """λ of the layer that `name` ends in."""
        query1, key1, query2, key2 = params[f"{name}.lambda"].unbind(1)  # (members, rank) each
        start = 0.8 - 0.6 * exp(-0.3 * int(name.rpartition(".")[2]))
        return (query1 * key1).sum(1).exp() - (query2 * key2).sum(1).exp() + start
