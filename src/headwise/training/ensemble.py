"""Members of one shape and their AdamW state, as one program.

Bitwise independence of neighbours, without the empty lanes of `stacked.py`: one member costs what
one member costs. A token network's operations treat each member by itself: a matrix product a
member, softmax and norm a row, elementwise sums and products. What could still tell members apart
is where their matrices lie in memory, for a matrix product may take another path on another
alignment. So members are stacked where all their matrices start on a vector boundary, that is,
where sizes are multiples of 16 floats (64 bytes), and are computed one after the other elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from headwise.training.streaming import Streaming

_ALIGN = 64  # floats; every member's weights start on a vector boundary
_VECTOR = 16  # floats; so do matrices whose size is a multiple of this


@runtime_checkable
class AdamWSettings(Protocol):
    """The part of a training's specification that AdamW needs."""

    @property
    def betas(self) -> tuple[float, float]: ...

    @property
    def weight_decay(self) -> float: ...


@runtime_checkable
class NetShape(Protocol):
    """A specification of a network as a function of stacked parameters."""

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]: ...

    def initial_params(self, seed: int) -> dict[str, Tensor]: ...

    def forward(self, params: Mapping[str, Tensor], inputs: Tensor) -> Tensor: ...


@runtime_checkable
class TokenNetShape(Protocol):
    """A specification of a network that maps tokens to outputs."""

    @property
    def token_dim(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]: ...

    def initial_params(self, seed: int) -> dict[str, Tensor]: ...

    def forward(self, params: Mapping[str, Tensor], inputs: Tensor) -> Tensor: ...


class Ensemble:
    """Many networks of one shape; `step` moves all of them."""

    def __init__(
        self,
        shape: NetShape,
        training: AdamWSettings,
        params: Sequence[Mapping[str, Tensor]],
        device: str = "cpu",
        stacked: bool = True,
    ) -> None:
        self.shape = shape
        sizes = shape.parameter_shapes()
        self._total = sum(prod(size) for size in sizes.values())
        self._flat = torch.zeros(len(params), -(-self._total // _ALIGN) * _ALIGN, device=device)
        self._flat.grad = torch.zeros_like(self._flat)
        stride = len(params) if stacked else 1
        starts = range(0, len(params), stride)
        self._stacks = [
            (slice(first, first + stride), self._leaves(params[first : first + stride], first))
            for first in starts
        ]
        self._adam = torch.optim.AdamW(
            [self._flat], betas=training.betas, weight_decay=training.weight_decay, fused=True
        )

    def _leaves(self, params: Sequence[Mapping[str, Tensor]], first: int) -> dict[str, Tensor]:
        """Parameters of members from `first` on, as views into the flat vector."""
        rows, start = self._flat[first : first + len(params)], 0
        leaves = {}
        for name, size in self.shape.parameter_shapes().items():
            stop = start + prod(size)
            rows[:, start:stop] = torch.stack([member[name].flatten() for member in params])
            view = rows[:, start:stop].view(len(params), *size)
            leaves[name] = view.detach().requires_grad_()
            start = stop
        return leaves

    def step(
        self,
        inputs: Float[Tensor, "members batch length token_dim"],
        targets: Float[Tensor, "members batch answers outputs"],
        answers: slice,
        rate: float,
    ) -> Float[Tensor, " members"]:
        """One step of AdamW on fresh sequences; returns each member's loss."""

        def squared_error(leaves: Mapping[str, Tensor], members: slice) -> Tensor:
            outputs = self.shape.forward(leaves, inputs[members])
            if outputs.shape[2] != targets.shape[2]:
                outputs = outputs[:, :, answers]
            # Squared error summed over coordinates; mean over answers.
            return (outputs - targets[members]).square().sum(-1).mean((1, 2))

        return self.descend(squared_error, rate)

    def descend(
        self,
        loss_of: Callable[[Mapping[str, Tensor], slice], Tensor],
        rate: float,
        clip: float = inf,
    ) -> Float[Tensor, " members"]:
        """One step of AdamW on any loss; `loss_of` gives the losses of a stack of members.

        Before the step, a member's gradient is scaled down to a norm of `clip` at most.
        """
        assert self._flat.grad is not None
        losses = []
        for members, leaves in self._stacks:
            loss = loss_of(leaves, members)
            gradients = torch.autograd.grad(loss.sum(), list(leaves.values()))
            parts = [gradient.flatten(1) for gradient in gradients]
            torch.cat(parts, 1, out=self._flat.grad[members, : self._total])
            losses.append(loss.detach())
        if clip < inf:
            for gradient in self._flat.grad:  # member by member: each as if it were alone
                gradient *= (clip / torch.linalg.vector_norm(gradient)).clamp_max(1.0)
        self._adam.param_groups[0]["lr"] = rate
        self._adam.step()
        return torch.cat(losses)

    def state(self) -> dict[str, Tensor]:
        """Weights and moments: all that the next step depends on."""
        moments = self._adam.state.get(self._flat, {})
        return {"weights": self._flat.detach(), **moments}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned, in this process or in another."""
        with torch.no_grad():
            self._flat.copy_(state["weights"])
        self._adam.state[self._flat] = {
            name: value.clone() for name, value in state.items() if name != "weights"
        }

    def predict(
        self, inputs: Shaped[Tensor, "1 batch length *token"]
    ) -> Float[Tensor, "members batch tokens outputs"]:
        """Outputs of the current weights on inputs that all share, without gradients."""
        with torch.no_grad():
            return torch.cat([self.shape.forward(leaves, inputs) for _, leaves in self._stacks])

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        return [
            {name: leaf[member].detach().cpu().clone() for name, leaf in leaves.items()}
            for members, leaves in self._stacks
            for member in range(members.stop - members.start)
        ]


def stackable(shape: TokenNetShape, training: Streaming) -> bool:
    """Do all members' matrices start on a vector boundary, in training and in validation?"""
    matrices = [size for size in shape.parameter_shapes().values() if len(size) == 2]
    counts = [*map(prod, matrices), training.batch, training.validation]
    return all(count % _VECTOR == 0 for count in counts)
