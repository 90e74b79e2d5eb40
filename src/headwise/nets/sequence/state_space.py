"""Diagonal state-space layers (after S4D, arXiv 2206.11893), by a scan.

    s(t) = a ⊙ s(t−1) + B x(t),    a = exp(Δ(−1/2 + iω)) complex, |a| < 1
    x(t) ← x(t) + GELU(Re(C s(t)) + D x(t) + b)

The recurrence is linear with a constant factor, so that a scan takes ⌈log₂ T⌉ doublings: after
step j a state holds the last 2ʲ tokens, and s(t) ← s(t) + a^(2ʲ) ⊙ s(t − 2ʲ) makes it 2ʲ⁺¹. Of
the last layer only s(T − 1) = Σ_t a^(T−1−t) ⊙ B x(t) is read. The decay rates start spread over
[0.01, 0.5], the frequencies as S4D-Lin's: ω_n = π n.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from headwise.core.errors import check_whole
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import NoExtras, Pooled

_RATES = 0.01, 0.5  # of Δ at the start


@spec
class StateSpace(NoExtras):
    """`layers` diagonal state-space layers, each with `state` complex numbers of state."""

    model: ClassVar[str] = "state space"
    state: int
    layers: int = 2

    def __post_init__(self) -> None:
        check_whole(self.state, "state", 1)
        check_whole(self.layers, "layers", 1)

    def units(self, dim: int) -> int:
        """Complex numbers of state."""
        return self.state

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """B and C, real parts above imaginary ones, and D with its bias."""
        shapes = ParameterShapes()
        for layer in range(self.layers):
            name = f"states.{layer}"
            shapes[f"{name}.into.weight"] = (2 * self.state, dim)
            shapes[f"{name}.out.weight"] = (dim, 2 * self.state)
            shapes |= linear_shapes(f"{name}.skip", dim, dim)
        return shapes

    def extra_shapes(self, dim: int) -> ParameterShapes:
        """Logarithm of Δ, and the angle Δ·ω by which a state turns at every token."""
        names = [f"states.{layer}" for layer in range(self.layers)]
        return {f"{name}.{part}": (self.state,) for name in names for part in ("rate", "turn")}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """Δ evenly spread by its logarithm; ω_n = π n."""
        rates = np.geomspace(*_RATES, size[0])
        return np.log(rates) if name.endswith("rate") else np.pi * rates * np.arange(size[0])

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The last token after the last layer."""
        stream = linear(hidden, params, embedding)
        for layer in range(self.layers):
            name = f"states.{layer}"
            decay = -0.5 * params[f"{name}.rate"].exp()
            turn, into = params[f"{name}.turn"], params[f"{name}.into.weight"]
            if layer == self.layers - 1:
                onto = into.mT.unsqueeze(1) @ _turns_back(decay, turn, stream.shape[2])
                both = (stream.flatten(2) @ onto.flatten(1, 2)).unsqueeze(2)
                stream = stream[:, :, -1:]
            else:
                real, imaginary = linear(stream, params, f"{name}.into").chunk(2, -1)
                factor = torch.polar(decay.exp(), turn)[:, None, None]
                states: Tensor = Scan.apply(torch.complex(real, imaginary), factor)
                both = torch.cat([states.real, states.imag], 3)
            read = linear(both, params, f"{name}.out")
            stream = stream + functional.gelu(read + linear(stream, params, f"{name}.skip"))
        return stream[:, :, -1]


def _turns_back(
    decay: Float[Tensor, "members state"], turn: Float[Tensor, "members state"], length: int
) -> Float[Tensor, "members length both both"]:
    """What exp((decay + i·turn)(T − 1 − t)) does to real parts beside imaginary ones, by t."""
    back = torch.arange(length - 1, -1, -1, device=decay.device, dtype=decay.dtype)[:, None]
    size, angle = (decay.unsqueeze(1) * back).exp(), turn.unsqueeze(1) * back
    along, across = torch.diag_embed(size * angle.cos()), torch.diag_embed(size * angle.sin())
    return torch.cat([torch.cat([along, across], 3), torch.cat([-across, along], 3)], 2)


class Scan(torch.autograd.Function):
    """s(t) = a ⊙ s(t−1) + x(t), from s = 0, by doubling; a (members, 1, 1, state), x complex.

    Backward the same scan runs from the end: g(t) = ∂s(t) + ā ⊙ g(t+1), ∂x = g and
    ∂a = Σ_t conj(s(t−1)) ⊙ g(t).
    """

    @staticmethod
    def forward(
        ctx: Any,
        steps: Complex[Tensor, "members batch length state"],
        factor: Complex[Tensor, "members 1 1 state"],
    ) -> Complex[Tensor, "members batch length state"]:
        """The states."""
        states, power, reach = steps.clone(), factor, 1
        while reach < states.shape[2]:
            states[:, :, reach:] += power * states[:, :, :-reach]
            power, reach = power * power, 2 * reach
        ctx.save_for_backward(states, factor)
        return states

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, states_grad: Complex[Tensor, "members batch length state"]
    ) -> tuple[Tensor, Tensor]:
        """The gradients of x and a."""
        states, factor = ctx.saved_tensors
        slopes, power, reach = states_grad.clone(), factor.conj(), 1
        while reach < slopes.shape[2]:
            slopes[:, :, :-reach] += power * slopes[:, :, reach:]
            power, reach = power * power, 2 * reach
        along = states[:, :, :-1].conj() * slopes[:, :, 1:]
        return slopes, along.sum((1, 2), keepdim=True)
