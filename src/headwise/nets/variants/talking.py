"""Talking heads (arXiv 2003.02436): heads are mixed before and after the softmax.

Z = P_l·(Q Kᵀ/√n) across heads,   A = P_w·softmax(Z) across heads,   o_i = A_i V_i

P_l and P_w are heads × heads, the same for all queries and keys. The mixed score of head i is
Σ_j P_l,ij q_j·k_j, one bilinear form of rank up to heads × qk_dim. Both start at the identity,
which is plain attention, with a little noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets.layers import ParameterShapes, Params
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant, Weights

_NOISE = 0.1


@dataclass(frozen=True)
class TalkingHeads(Variant):
    """Heads that are mixed linearly, before the softmax and after it."""

    title: ClassVar[str] = "talking"

    def readers(self, layer: AttentionShape) -> Sequence[tuple[int, ...]]:
        """Every map enters every head's output."""
        return [tuple(range(layer.heads))] * layer.heads

    def extra_shapes(self, layer: AttentionShape, width: int) -> ParameterShapes:
        """P_l and P_w."""
        square = layer.heads, layer.heads
        return {"talk_scores": square, "talk_weights": square}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """The identity with a little noise."""
        return np.eye(size[0]) + _NOISE * rng.standard_normal(size) / np.sqrt(size[0])

    def mix_scores(self, params: Params, name: str, scores: Weights) -> Weights:
        """P_l across heads."""
        return _across(params[f"{name}.talk_scores"], scores)

    def combine(
        self, params: Params, name: str, weights: Float[Tensor, "members #batch maps asking keys"]
    ) -> Float[Tensor, "members #batch heads asking keys"]:
        """P_w across heads."""
        return _across(params[f"{name}.talk_weights"], weights)


def _across(
    mix: Float[Tensor, "members heads maps"], values: Float[Tensor, "members batch maps a b"]
) -> Float[Tensor, "members batch heads a b"]:
    flat = values.flatten(3)  # (members, batch, maps, a·b)
    return torch.matmul(mix.unsqueeze(1), flat).unflatten(3, values.shape[3:])
