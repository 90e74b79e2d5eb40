"""A gated recurrent unit: what it knows of a sequence is its state after the last token.

r, z = σ(W_r x_t + U_r h + b), σ(W_z x_t + U_z h + b)
n = tanh(W_n x_t + b + r ⊙ (U_n h + c)),    h ← (1 − z) ⊙ n + z ⊙ h,    h = 0 before the first

The backward pass is written out (`_Steps`): autograd would record some twenty operations a token.
"""

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.errors import check_whole
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import NoExtras, Pooled

Steps = Float[Tensor, "members batch length rows"]
"""What each token adds to r, z and n."""

StateMap = Float[Tensor, "members rows state"]
StateShift = Float[Tensor, "members rows"]


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
        embed, shift = params[f"{embedding}.weight"], params[f"{embedding}.bias"]
        onto, weight = params["recurrence.token.weight"], params["recurrence.state.weight"]
        constant = torch.baddbmm(
            params["recurrence.token.bias"].unsqueeze(2), onto, shift.unsqueeze(2)
        )
        folded = {"token.weight": onto @ embed, "token.bias": constant.squeeze(2)}
        steps = linear(hidden, folded, "token")  # of the hidden layer: one map instead of two
        state: Tensor = _Steps.apply(steps, weight, params["recurrence.state.bias"])
        return state


class _Steps(torch.autograd.Function):
    """(W x + b of every token, U, its biases) → the state after the last token.

    With A = [∂r, ∂z, ∂(U_n h + c)]/∂h, known for all tokens at once, going back takes a token

        ∂(U h) = A ⊙ ∂h,    ∂h ← z ⊙ ∂h + Uᵀ ∂(U h)
    """

    @staticmethod
    def forward(ctx: Any, steps: Steps, weight: StateMap, bias: StateShift) -> Pooled:
        """One token after the other, by its nature."""
        members, batch, _, _ = steps.shape
        both, shift = 2 * weight.shape[2], bias[:, None]
        of_gates, of_new = weight[:, :both].mT, weight[:, both:].mT
        for_gates = (steps[..., :both] + shift.unsqueeze(2)[..., :both]).unbind(2)
        shift = shift[..., both:]
        states, gates, known, news = [steps.new_zeros(members, batch, both // 2)], [], [], []
        for before, new in zip(for_gates, steps[..., both:].unbind(2), strict=True):
            gates.append(torch.baddbmm(before, states[-1], of_gates).sigmoid_())
            known.append(torch.baddbmm(shift, states[-1], of_new))
            reset, keep = gates[-1].chunk(2, 2)
            news.append(torch.addcmul(new, reset, known[-1]).tanh_())
            states.append(torch.lerp(news[-1], states[-1], keep))
        kept = [torch.stack(each) for each in (states[:-1], gates, known, news)]
        ctx.save_for_backward(weight, *kept)  # token after token
        return states[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, state_grad: Pooled) -> tuple[Steps, StateMap, StateShift]:
        """The gradients of W x + b, U and U's biases."""
        weight, states, gates, known, news = ctx.saved_tensors
        members, size = weight.shape[0], weight.shape[2]
        reset, keep = gates.chunk(2, 3)
        to_new = (1 - keep) * (1 - news * news)  # ∂(tanh's argument)/∂h
        curved = gates * (1 - gates)
        to_gates = torch.cat([to_new * known, states - news], 3) * curved
        along = torch.cat([to_gates, to_new * reset], 3).unflatten(3, (3, size))  # A
        grads, slopes, slope = [], [], state_grad
        for each, kept in zip(reversed(along.unbind()), reversed(keep.unbind()), strict=True):
            slopes.append(slope)
            grads.append((each * slope.unsqueeze(2)).flatten(2))  # ∂(U h)
            slope = torch.baddbmm(slope * kept, grads[-1], weight)
        of_known = torch.stack(grads[::-1], 2)  # (members, batch, length, rows)
        of_new = torch.stack(slopes[::-1], 2) * to_new.movedim(0, 2)
        flat = of_known.flatten(1, 2)
        weight_grad = flat.mT @ states.movedim(0, 2).reshape(members, -1, size)
        steps_grad = torch.cat([of_known[..., : 2 * size], of_new], 3)
        return steps_grad, weight_grad, flat.sum(1)
