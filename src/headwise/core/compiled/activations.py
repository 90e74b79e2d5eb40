"""GELU and the RMS norm as steps of autograd: forward and backward are compiled."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.heads import flat
from headwise.core.compiled.host import LANES, compiling
from headwise.core.compiled.rows import gelu_forward, norm_backward, norm_forward


def gelu(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """x·Φ(x)."""
    found: Tensor = _CompiledGelu.apply(values)
    return found


def rms_norm(
    vectors: Float[Tensor, "members *batch size"], gains: Float[Tensor, "members size"]
) -> Float[Tensor, "members *batch size"]:
    """γ ⊙ x/RMS(x) for each of a member's vectors, whose size is a multiple of LANES."""
    found: Tensor = _CompiledRmsNorm.apply(vectors, gains)
    return found


class _CompiledGelu(torch.autograd.Function):
    """x → x·Φ(x)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        """The values; their slopes are kept."""
        values = values.contiguous()
        found, slopes = torch.empty_like(values), torch.empty_like(values)
        gelu_forward(flat(values), flat(found), flat(slopes))
        ctx.save_for_backward(slopes)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """The gradient of x."""
        (slopes,) = ctx.saved_tensors
        return grad * slopes


class _CompiledRmsNorm(torch.autograd.Function):
    """(x, γ) → γ ⊙ x/RMS(x)."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, gains: Tensor) -> Tensor:
        """The normed vectors."""
        vectors, gains = vectors.contiguous(), gains.contiguous()
        found, inverses = torch.empty_like(vectors), vectors.new_empty(vectors.shape[:-1])
        size = vectors.shape[-1]
        norm_forward(flat(vectors), flat(gains), flat(found), flat(inverses), size)
        ctx.save_for_backward(vectors, gains, inverses)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of x and γ."""
        vectors, gains, inverses = ctx.saved_tensors
        slopes, gain_slopes = torch.empty_like(vectors), torch.zeros_like(gains)
        scratch, size = vectors.new_empty(vectors.shape[-1]), vectors.shape[-1]
        given = flat(vectors), flat(gains), flat(inverses), flat(grad)
        norm_backward(*given, flat(slopes), flat(gain_slopes), flat(scratch), size)
        return slopes, gain_slopes


def try_out() -> None:
    """Compile, or load what was compiled before, and go forwards and backwards once."""
    vectors, gains = torch.ones(1, 2, LANES, requires_grad=True), torch.ones(1, LANES)
    with compiling():
        gelu(rms_norm(vectors, gains.requires_grad_())).sum().backward()
