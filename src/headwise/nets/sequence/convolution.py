"""A temporal convolution: causal layers whose dilation doubles, read at the last token.

x⁽ˡ⁺¹⁾(t) = x⁽ˡ⁾(t) + ReLU(b + Σ_{j<k} W_j x⁽ˡ⁾(t − j·2ˡ)),   x(t) = 0 before the first token

With kernel k and L layers the last token sees 1 + (k − 1)(2ᴸ − 1) tokens (arXiv 1803.01271).

Read at the last token alone, layer l is needed at every 2ˡ⁺¹-th token back from it, where it takes
every 2ˡ-th: so each layer is a convolution of stride two over what the layer before it left, and
all layers together cost about as much as one over the whole sequence.
"""

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from headwise.core.errors import check_whole
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import NoExtras, Pooled

Taken = Float[Tensor, "members batch taken dim"]
Every2nd = Float[Tensor, "members batch outputs dim"]
Taps = Float[Tensor, "members dim taps"]
Shift = Float[Tensor, "members dim"]


@spec
class Convolutions(NoExtras):
    """`layers` causal convolutions over the tokens, each of which has as many channels."""

    model: ClassVar[str] = "convolution"
    layers: int
    kernel: int = 3

    def __post_init__(self) -> None:
        check_whole(self.layers, "layers", 1, 16)
        check_whole(self.kernel, "kernel", 2)

    @classmethod
    def reaching(cls, length: int, kernel: int = 3) -> "Convolutions":
        """As many layers as it takes for the last token to see `length` tokens."""
        check_whole(length, "length", 1)
        check_whole(kernel, "kernel", 2)
        layers = 1
        while 1 + (kernel - 1) * (2**layers - 1) < length:
            layers += 1
        return cls(layers=layers, kernel=kernel)

    def units(self, dim: int) -> int:
        """Channels."""
        return dim

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """The layers' maps of `kernel` tokens side by side, the latest first."""
        shapes = ParameterShapes()
        for layer in range(self.layers):
            shapes |= linear_shapes(f"convolutions.{layer}", dim, self.kernel * dim)
        return shapes

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The last token after the last layer."""
        stream = linear(hidden, params, embedding)
        for layer in range(self.layers):
            # Outputs that count: as many as later layers reach, of which the stream has half.
            most = 1 + (self.kernel - 1) * ((1 << (self.layers - 1 - layer)) - 1)
            outputs = min(most, -(-stream.shape[2] // 2))
            taken = 2 * (outputs - 1) + self.kernel
            stream = functional.pad(stream, (0, 0, taken - stream.shape[2], 0))  # or cut off
            weight = params[f"convolutions.{layer}.weight"]
            stream = _Halving.apply(stream, weight, params[f"convolutions.{layer}.bias"])
        return stream[:, :, -1]


class _Halving(torch.autograd.Function):
    """x(t) + ReLU(W [x(t), x(t−1), …] + b) at every second token, the last among them.

    The backward pass adds each tap's gradient to the tokens that it took.
    """

    @staticmethod
    def forward(ctx: Any, stream: Taken, weight: Taps, bias: Shift) -> Every2nd:
        """The outputs; the stream has as many tokens as they take."""
        _, batch, taken, dim = stream.shape
        taps = torch.cat(_taps(stream, weight.shape[2] // dim), 3).flatten(1, 2)
        change = torch.baddbmm(bias.unsqueeze(1), taps, weight.mT).relu_()
        ctx.save_for_backward(taps, weight, change)
        ctx.taken = taken
        return _taps(stream, weight.shape[2] // dim)[0] + change.unflatten(1, (batch, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outputs_grad: Every2nd) -> tuple[Taken, Taps, Shift]:
        """The gradients of stream, weight and bias."""
        taps, weight, change = ctx.saved_tensors
        members, batch, _, dim = outputs_grad.shape
        slope = outputs_grad.flatten(1, 2) * (change > 0)
        stream_grad = outputs_grad.new_zeros(members, batch, ctx.taken, dim)
        places = _taps(stream_grad, weight.shape[2] // dim)
        places[0].copy_(outputs_grad)
        by_tap = (slope @ weight).unflatten(1, (batch, -1)).split(dim, 3)
        for place, own in zip(places, by_tap, strict=True):
            place += own
        return stream_grad, slope.mT @ taps, slope.sum(1)


def _taps(stream: Taken, kernel: int) -> list[Every2nd]:
    """What each tap takes, the latest token first."""
    last = stream.shape[2] - kernel + 1
    return [stream[:, :, tap : last + tap : 2] for tap in reversed(range(kernel))]
