"""Diagonal state-space layers (after S4D, arXiv 2206.11893), by a scan.

    s(t) = a ⊙ s(t−1) + B x(t),    a = exp(Δ(−1/2 + iω)) complex, |a| < 1
    x(t) ← x(t) + GELU(Re(C s(t)) + D x(t) + b)

The recurrence is linear with a constant factor, so that a scan takes ⌈log₂ T⌉ doublings: after
step j a state holds the last 2ʲ tokens, and s(t) ← s(t) + a^(2ʲ) ⊙ s(t − 2ʲ) makes it 2ʲ⁺¹. The
decay rates start spread over [0.01, 0.5], the frequencies as S4D-Lin's: ω_n = π n.
"""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor
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
            real, imaginary = linear(stream, params, f"{name}.into").chunk(2, -1)
            decay = -0.5 * params[f"{name}.rate"].exp()
            factor = torch.polar(decay.exp(), params[f"{name}.turn"])[:, None, None]
            states = scan(torch.complex(real, imaginary), factor)
            read = linear(torch.cat([states.real, states.imag], 3), params, f"{name}.out")
            stream = stream + functional.gelu(read + linear(stream, params, f"{name}.skip"))
        return stream[:, :, -1]


def scan(
    steps: Complex[Tensor, "members batch length state"],
    factor: Complex[Tensor, "members 1 1 state"],
) -> Complex[Tensor, "members batch length state"]:
    """s(t) = factor ⊙ s(t−1) + steps(t), from s = 0, by doubling."""
    states, reach, length = steps, 1, steps.shape[2]
    while reach < length:
        states = states + factor * functional.pad(states, (0, 0, reach, 0))[:, :, :length]
        factor, reach = factor * factor, 2 * reach
    return states
