"""The RMS norm with a gain, with the backward pass written out.

    n = x/√(mean x² + ε),   y = γ ⊙ n,   means over the last axis
    ∂x = (γ ⊙ ∂y − n mean(γ ⊙ ∂y ⊙ n))/√(mean x² + ε),   ∂γ = Σ ∂y ⊙ n

torch has no kernel for it on a CPU: its own is a row of operations, of which autograd keeps and
reads again more than twice as many arrays as there are here.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_EPSILON = 1e-6


def rms_norm(
    vectors: Float[Tensor, "*batch size"], gain: Float[Tensor, "*#batch size"]
) -> Float[Tensor, "*batch size"]:
    """γ ⊙ x/RMS(x), for each vector x."""
    normed: Tensor = _RmsNorm.apply(vectors, gain)
    return normed


class _RmsNorm(torch.autograd.Function):
    """(x, γ) → y; see the module's top for the formulas."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Float[Tensor, "*batch size"], gain: Float[Tensor, "*#batch size"]
    ) -> Float[Tensor, "*batch size"]:
        """The normed vectors."""
        length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
        inverse = torch.rsqrt(length.square_().div_(vectors.shape[-1]).add_(_EPSILON))
        ctx.save_for_backward(vectors, gain, inverse)
        return (vectors * inverse).mul_(gain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, "*batch size"]) -> tuple[Tensor, Tensor]:
        """The gradients of x and γ."""
        vectors, gain, inverse = ctx.saved_tensors
        normal = vectors * inverse
        by_gain = grad * normal
        gain_grad = by_gain.sum_to_size(gain.shape)
        mean = by_gain.mul_(gain).mean(-1, keepdim=True)
        return (grad * gain).addcmul_(normal, mean, value=-1).mul_(inverse), gain_grad
