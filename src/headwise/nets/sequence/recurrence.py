"""A gated recurrent unit: what it knows of a sequence is its state after the last token.

r, z = σ(W_r x_t + U_r h + b), σ(W_z x_t + U_z h + b)
n = tanh(W_n x_t + b + r ⊙ (U_n h + c)),    h ← (1 − z) ⊙ n + z ⊙ h,    h = 0 before the first
"""

from typing import ClassVar

import torch

from headwise.core.errors import check_whole
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import NoExtras, Pooled


@spec
class Recurrence(NoExtras):
    """A GRU with `state` numbers of state, read after the last token."""

    model: ClassVar[str] = "GRU"
    state: int

    def __post_init__(self) -> None:
        check_whole(self.state, "state", 1)

    def units(self, dim: int) -> int:
        """Numbers of state."""
        return self.state

    def out_dim(self, dim: int) -> int:
        """Numbers of state."""
        return self.state

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """The maps of token and state; r, z and n one after the other, as torch's GRU has them."""
        rows = 3 * self.state
        return {
            **linear_shapes("recurrence.token", rows, dim),
            **linear_shapes("recurrence.state", rows, self.state),
        }

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The state after the last token."""
        tokens = linear(hidden, params, embedding)
        steps = linear(tokens, params, "recurrence.token").unbind(2)
        weight = params["recurrence.state.weight"].mT
        bias = params["recurrence.state.bias"].unsqueeze(1)
        state = tokens.new_zeros(*tokens.shape[:2], self.state)
        both = 2 * self.state
        for step in steps:  # one after the other by its nature
            known = torch.baddbmm(bias, state, weight)
            gates = torch.sigmoid(step[..., :both] + known[..., :both])
            reset, keep = gates.chunk(2, -1)
            new = torch.tanh(torch.addcmul(step[..., both:], reset, known[..., both:]))
            state = torch.lerp(new, state, keep)
        return state
