"""Linear attention (arXiv 2006.16236): no softmax, so no sharpening; the control.

o_i = φ(q_i)ᵀ Σ_t φ(k_i(t)) v_i(t)ᵀ / φ(q_i)ᵀ Σ_t φ(k_i(t)),   φ(u) = elu(u) + 1

A weight is a ratio of sums of φ: from key to key it varies as φ does, about linearly in the key,
where softmax varies exponentially. (Written out here over all pairs of tokens; the O(T) form is the
same function.)
"""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn import functional

from headwise.nets.layers import Params
from headwise.nets.variants._variant import Keys, Queries, Seen, Variant, Weights

_LEAST = 1e-6  # of a row's sum: a row that sees no key has zeros


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
        return weights / weights.sum(-1, keepdim=True).clamp_min(_LEAST)
