"""Score, softmax, pool: the only part of the folded network that touches every token.

Autograd would pass over the hidden layer six times and keep a gradient for each use of it; with
the backward pass written out there is one product. For one member and sequence, heads i, tokens t:

    s_i(t) = v_i·r_t, with one more logit c_i that belongs to no token;  a_i = softmax(s_i, c_i)
    P_i = Σ_t a_i(t) r_t,  p_i = the weight of c_i

Backward, with g_i(t) = r_t·∂P_i and m_i = Σ_t a_i(t) g_i(t) + p_i ∂p_i = P_i·∂P_i + p_i ∂p_i:

    ∂s_i(t) = a_i(t) (g_i(t) − m_i),   ∂c_i = p_i (∂p_i − m_i)
    ∂r_t = Σ_i a_i(t) ∂P_i + ∂s_i(t) v_i = [a; ∂s]ᵀ·[∂P; v],   ∂v_i = Σ_t ∂s_i(t) r_t

A head may see some tokens only, or keep the largest scores only: a weight of zero has no gradient,
and the formulas stay as they are.

A head's weights lie side by side, token after token: softmax and the small products are then up
to twice as fast on a CPU as with the heads side by side.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable


class PoolByScore(torch.autograd.Function):
    """(r, v, c) → (P, p); see the module's top for the formulas."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Float[Tensor, "members batch length width"],
        directions: Float[Tensor, "members heads width"],
        extra_logits: Float[Tensor, "members heads"],
        seen: Bool[Tensor, "heads 1 keys"] | None = None,
        strongest: int = 0,
    ) -> tuple[Float[Tensor, "members batch heads width"], Float[Tensor, "members batch heads"]]:
        """Pooled hidden layers P and the weights p of the logit that belongs to no token.

        `seen`: which tokens, and whether the extra logit, a head sees (None: all); of those it
        keeps the `strongest` (0: all; those that tie with the last stay).
        """
        members, batch, length, _ = hidden.shape
        logits = (directions @ hidden.flatten(1, 2).mT).view(members, -1, batch, length)
        extra = extra_logits[:, None, :, None].expand(-1, batch, -1, 1)
        logits = torch.cat([logits.transpose(1, 2), extra], 3)
        if seen is not None:
            logits.masked_fill_(~seen.squeeze(1), -torch.inf)
        if 0 < strongest <= length:
            least = logits.topk(strongest, 3).values[..., -1:]
            logits.masked_fill_(logits < least, -torch.inf)
        weights = torch.softmax(logits, 3)
        attention, extra_weight = weights[..., :length], weights[..., length]
        pooled = attention @ hidden
        ctx.save_for_backward(hidden, directions, attention, extra_weight, pooled)
        return pooled, extra_weight

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        pooled_grad: Float[Tensor, "members batch heads width"],
        extra_grad: Float[Tensor, "members batch heads"],
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """The gradients of r, v and c."""
        hidden, directions, attention, extra_weight, pooled = ctx.saved_tensors
        mean = (pooled * pooled_grad).sum(3) + extra_weight * extra_grad  # m_i
        logit_grad = pooled_grad @ hidden.mT  # g_i(t): (members, batch, heads, length)
        logit_grad = logit_grad.sub_(mean.unsqueeze(3)).mul_(attention)
        left = torch.cat([attention, logit_grad], 2)
        right = torch.cat([pooled_grad, directions.unsqueeze(1).expand_as(pooled_grad)], 2)
        members, batch, length, width = hidden.shape
        tokens = batch * length  # reshape, unlike flatten, works on batched gradients
        by_head = logit_grad.transpose(1, 2).reshape(members, -1, tokens)
        direction_grad = by_head @ hidden.reshape(members, tokens, width)
        logit_extra_grad = (extra_weight * (extra_grad - mean)).sum(1)
        return left.mT @ right, direction_grad, logit_extra_grad, None, None
