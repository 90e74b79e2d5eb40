"""Linear attention (arXiv 2006.16236): no softmax, so no sharpening; the control.

o_i = φ(q_i)ᵀ Σ_t φ(k_i(t)) v_i(t)ᵀ / φ(q_i)ᵀ Σ_t φ(k_i(t)),   φ(u) = elu(u) + 1

A weight is a ratio of sums of φ: from key to key it varies as φ does, about linearly in the key,
where softmax varies exponentially. (Written out here over all pairs of tokens; the O(T) form is the
same function; for one query, the class token, it is `pool_by_features`.)
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.nets.layers import Hidden, Params
from headwise.nets.variants._variant import Keys, Queries, Seen, Variant, Weights
from headwise.nets.variants.feature_pool import LEAST, PoolByFeatures


@dataclass(frozen=True)
class LinearHeads(Variant):
    """Heads whose weights are φ(q)·φ(k), normalised."""

    title: ClassVar[str] = "linear"
    folds: ClassVar[bool] = False

    def weigh(self, params: Params, name: str, query: Queries, key: Keys, seen: Seen) -> Weights:
        """φ(q)·φ(k) as shares of their sum."""
        weights = (functional.elu(query) + 1) @ (functional.elu(key) + 1).mT
        if seen is not None:
            weights = weights.masked_fill(~seen, 0.0)
        return weights / weights.sum(-1, keepdim=True).clamp_min(LEAST)


def pool_by_features(
    hidden: Hidden,
    query: Float[Tensor, "members 1 both"],
    key_map: Float[Tensor, "members both columns"],
    shift: Float[Tensor, "members 1 both"],
    heads: int,
) -> tuple[Float[Tensor, "members batch heads width"], Float[Tensor, "members batch heads"]]:
    """Weighted means of the hidden layer r, and the class token's weight, for one query a head.

    A token's key is key_map·(r_t, 0) + shift, the class token's key_map·(0, 1) + shift. All heads'
    sums φ(q_i)·φ(k_i) are one product with a matrix that holds φ(q_i) in the rows of head i.
    """
    up = (functional.elu(query) + 1).mT  # (members, both, 1)
    rows = torch.arange(up.shape[1], device=up.device) * heads // up.shape[1]
    by_head = up * functional.one_hot(rows, heads)  # (members, both, heads)
    own = (functional.elu(shift + key_map[..., -1:].mT) + 1) @ by_head  # (members, 1, heads)
    pooled, own_weight = PoolByFeatures.apply(hidden, key_map[..., :-1], shift, by_head, own)
    return pooled, own_weight
