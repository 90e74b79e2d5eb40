"""A temporal convolution: causal layers whose dilation doubles, read at the last token.

x⁽ˡ⁺¹⁾(t) = x⁽ˡ⁾(t) + ReLU(b + Σ_{j<k} W_j x⁽ˡ⁾(t − j·2ˡ)),   x(t) = 0 before the first token

With kernel k and L layers the last token sees 1 + (k − 1)(2ᴸ − 1) tokens (arXiv 1803.01271).
"""

from typing import ClassVar

import torch
from torch.nn import functional

from headwise.core.errors import check_whole
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import NoExtras, Pooled


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
        length = stream.shape[2]
        for layer in range(self.layers):
            reach = [min(step << layer, length) for step in range(self.kernel)]
            taps = [functional.pad(stream, (0, 0, back, 0))[:, :, :length] for back in reach]
            mixed = linear(torch.cat(taps, 3), params, f"convolutions.{layer}")
            stream = stream + torch.relu(mixed)
        return stream[:, :, -1]
