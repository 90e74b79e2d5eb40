"""Linear attention's pooling for one query a head, with the backward pass written out.

For one member and sequence, heads i, tokens t with hidden layer r_t and key k_t = K r_t + s:

    w_i(t) = φ(q_i)·φ(k_i(t)) = (Φ φ(k_t))_i,  Φ with φ(q_i) in row i at the coordinates of head i
    a_i(t) = w_i(t)/S_i,  p_i = c_i/S_i,  S_i = Σ_t w_i(t) + c_i,  c_i the class token's sum
    P_i = Σ_t a_i(t) r_t

Backward, with g_i(t) = r_t·∂P_i and m_i = P_i·∂P_i + p_i ∂p_i (as in `nets/pool.py`):

    ∂w_i(t) = (g_i(t) − m_i)/S_i,   ∂c_i = (∂p_i − m_i)/S_i
    ∂k_t = φ'(k_t) ⊙ Φᵀ ∂w(t),   φ'(u) = min(φ(u), 1),   ∂r_t = Kᵀ ∂k_t + Σ_i a_i(t) ∂P_i

Autograd would keep and clear an array of the hidden layer's size for each of these steps.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from headwise.nets.layers import Hidden

LEAST = 1e-6  # of a row's sum: a row that sees no key has zeros


class PoolByFeatures(torch.autograd.Function):
    """(r, K, s, Φᵀ, c) → (P, p); see the module's top for the formulas."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Hidden,
        key_map: Float[Tensor, "members both width"],
        shift: Float[Tensor, "members 1 both"],
        by_head: Float[Tensor, "members both heads"],
        own: Float[Tensor, "members 1 heads"],
    ) -> tuple[Float[Tensor, "members batch heads width"], Float[Tensor, "members batch heads"]]:
        """Weighted means of the hidden layer, and the class token's weight."""
        members, batch, length, width = hidden.shape
        flat = hidden.reshape(members, batch * length, width)
        keys = functional.elu_(torch.baddbmm(shift, flat, key_map.mT)).add_(1)  # φ(k)
        weights = (keys @ by_head).view(members, batch, length, -1).mT
        share = 1 / (weights.sum(3) + own).clamp_min(LEAST)  # 1/S
        attention, own_weight = weights * share.unsqueeze(3), own * share
        pooled = attention @ hidden
        ctx.save_for_backward(hidden, key_map, by_head, keys, attention, own_weight, share, pooled)
        return pooled, own_weight

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        pooled_grad: Float[Tensor, "members batch heads width"],
        own_grad: Float[Tensor, "members batch heads"],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The gradients of r, K, s, Φᵀ and c."""
        hidden, key_map, by_head, keys, attention, own_weight, share, pooled = ctx.saved_tensors
        members, batch, length, width = hidden.shape
        mean = (pooled * pooled_grad).sum(3) + own_weight * own_grad  # m
        slope = pooled_grad @ hidden.mT  # g: (members, batch, heads, length)
        slope = slope.sub_(mean.unsqueeze(3)).mul_(share.unsqueeze(3))  # ∂w
        slope = slope.mT.reshape(members, batch * length, -1)
        by_head_grad = keys.mT @ slope
        keys_grad = (slope @ by_head.mT).mul_(keys.clamp_max(1.0))
        flat = hidden.reshape(members, batch * length, width)
        hidden_grad = (keys_grad @ key_map).view(-1, length, width)
        hidden_grad.baddbmm_(attention.flatten(0, 1).mT, pooled_grad.flatten(0, 1))
        own_slope = ((own_grad - mean) * share).sum(1, keepdim=True)
        return (
            hidden_grad.view_as(hidden),
            keys_grad.mT @ flat,
            keys_grad.sum(1, keepdim=True),
            by_head_grad,
            own_slope,
        )
