"""AdamW on many members at once: their parameters are rows of one matrix, updated in one call.

A member's row starts on a vector boundary. The named parameters are views into the matrix, with
the axis of members first, as networks expect; gradients are gathered into a second matrix. What
is done to the gradients in between, such as clipping, is the caller's.
"""

from collections.abc import Mapping, Sequence
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.adamw import adamw

from headwise.nets.base import NetShape

_ALIGN = 64  # floats; every member's weights start on a vector boundary


class FlatAdamW:
    """Members' weights, gradients and moments as flat matrices of one row a member."""

    def __init__(
        self,
        shape: NetShape,
        params: Sequence[Mapping[str, Tensor]],
        betas: tuple[float, float],
        weight_decay: float,
        device: str,
    ) -> None:
        self._sizes = shape.parameter_shapes()
        self._total = sum(prod(size) for size in self._sizes.values())
        self._flat = torch.zeros(len(params), -(-self._total // _ALIGN) * _ALIGN, device=device)
        self.gradient: Float[Tensor, "members padded"] = torch.zeros_like(self._flat)
        self._flat.grad = self.gradient
        self._adam = torch.optim.AdamW(
            [self._flat], betas=betas, weight_decay=weight_decay, fused=device != "meta"
        )
        for row, member in zip(self._flat, params, strict=True):
            row[: self._total] = torch.cat([member[name].flatten() for name in self._sizes])

    @property
    def device(self) -> torch.device:
        """Where everything lies."""
        return self._flat.device

    def leaves(self, members: slice) -> dict[str, Tensor]:
        """Named parameters of these members, as views into the matrix; gradients can be asked."""
        rows, start, leaves = self._flat[members], 0, {}
        for name, size in self._sizes.items():
            stop = start + prod(size)
            view = rows[:, start:stop].view(len(rows), *size)
            leaves[name] = view.detach().requires_grad_()
            start = stop
        return leaves

    def gather(
        self, losses: Float[Tensor, " members"], leaves: Mapping[str, Tensor], members: slice
    ) -> None:
        """Write the members' gradients of their own losses; an unused parameter has zeros."""
        self.carry([losses.sum()], [None], leaves, members)

    def carry(
        self,
        values: Sequence[Tensor],
        slopes: Sequence[Tensor | None],
        leaves: Mapping[str, Tensor],
        members: slice,
    ) -> None:
        """Write the members' gradients, given those of `values` that are functions of them."""
        gradients = torch.autograd.grad(
            values, list(leaves.values()), slopes, materialize_grads=True
        )
        parts = [gradient.flatten(1) for gradient in gradients]
        torch.cat(parts, 1, out=self.gradient[members, : self._total])

    def step(self, rate: float) -> None:
        """One step of AdamW along the gathered gradients."""
        state = self._adam.state.get(self._flat)
        if not state or self.device.type != "cpu":
            self._adam.param_groups[0]["lr"] = rate
            self._adam.step()
            return
        # The same kernel without the optimiser's own way to it, which takes several times as long.
        group, moments = self._adam.param_groups[0], ("exp_avg", "exp_avg_sq")
        one, two = ([state[name]] for name in moments)
        with torch.no_grad():
            adamw(
                [self._flat], [self.gradient], one, two, [], [state["step"]], fused=True,
                amsgrad=False, beta1=group["betas"][0], beta2=group["betas"][1], lr=rate,
                weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
            )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """Weights and moments: all that the next step depends on."""
        return {"weights": self._flat.detach(), **self._adam.state.get(self._flat, {})}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned, in this process or in another."""
        with torch.no_grad():
            self._flat.copy_(state["weights"])
        self._adam.state[self._flat] = {
            name: value.clone() for name, value in state.items() if name != "weights"
        }


def copy_member(leaves: Mapping[str, Tensor], member: int) -> dict[str, Tensor]:
    """One member's weights, on the CPU, without the axis of members."""
    return {name: leaf[member].detach().cpu().clone() for name, leaf in leaves.items()}
