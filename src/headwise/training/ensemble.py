"""Members of one shape and their AdamW state, as one program.

Bitwise independence of neighbours, without the empty lanes of `samples/stacked.py`: one member
costs what one member costs. A token network's operations treat each member by itself: a matrix
product a member, softmax and norm a row, elementwise sums and products. What could still tell
members apart is where their matrices lie in memory, for a matrix product may take another path on
another alignment. So members are stacked where all their matrices start on a vector boundary, that
is, where sizes are multiples of 16 floats (64 bytes) and no matrix is a mere vector (a product with
one takes another path where it is alone), and are computed one after the other elsewhere.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from headwise.nets.base import NetShape, TokenNetShape, forward_and_penalty
from headwise.training.adamw import FlatAdamW, copy_member
from headwise.training.stream.specification import Streaming

_VECTOR = 16  # floats; matrices whose size is a multiple of this start on a vector boundary

LossOf = Callable[[Mapping[str, Tensor], slice], Tensor]
"""The losses of a stack of members, given their parameters and which members they are."""


@runtime_checkable
class AdamWSettings(Protocol):
    """The part of a training's specification that AdamW needs."""

    @property
    def betas(self) -> tuple[float, float]:
        """Decay rates of the two moments."""
        ...

    @property
    def weight_decay(self) -> float:
        """Decoupled weight decay."""
        ...


class Ensemble:
    """Many networks of one shape; `step` moves all of them."""

    def __init__(
        self,
        shape: NetShape,
        training: AdamWSettings,
        params: Sequence[Mapping[str, Tensor]],
        device: str = "cpu",
        together: int | None = None,
    ) -> None:
        """`together`: how many members make a stack; None for all of them."""
        self.shape = shape
        self._adamw = FlatAdamW(shape, params, training.betas, training.weight_decay, device)
        stride = together or len(params)
        ends = [*range(stride, len(params), stride), len(params)]
        stacks = [slice(*pair) for pair in itertools.pairwise([0, *ends])]
        self._stacks = [(members, self._adamw.leaves(members)) for members in stacks]

    def step(
        self,
        inputs: Float[Tensor, "members batch length token_dim"],
        targets: Float[Tensor, "members batch answers outputs"],
        answers: slice,
        rate: float,
    ) -> Float[Tensor, " members"]:
        """One step of AdamW on fresh sequences; returns each member's loss."""
        losses = []
        for members, leaves in self._stacks:
            outputs, penalty = forward_and_penalty(self.shape, leaves, inputs[members])
            if outputs.shape[2] != targets.shape[2]:
                outputs = outputs[:, :, answers]
            # Squared error summed over coordinates; mean over answers. Its slope is known.
            gaps = outputs.detach() - targets[members]
            loss = gaps.square().sum(-1).mean((1, 2)) + penalty
            slopes = gaps * (2 / (gaps.shape[1] * gaps.shape[2]))
            values = [outputs, penalty.sum()] if isinstance(penalty, Tensor) else [outputs]
            self._adamw.carry(values, [slopes, None][: len(values)], leaves, members)
            losses.append(loss.detach())
        self._adamw.step(rate)
        return torch.cat(losses)

    def descend(self, loss_of: LossOf, rate: float, clip: float = inf) -> Float[Tensor, " members"]:
        """One step of AdamW on any loss; `loss_of` gives the losses of a stack of members.

        Before the step, a member's gradient is scaled down to a norm of `clip` at most.
        """
        losses = []
        for members, leaves in self._stacks:
            loss = loss_of(leaves, members)
            self._adamw.gather(loss, leaves, members)
            losses.append(loss.detach())
        if clip < inf:
            for gradient in self._adamw.gradient:  # member by member: each as if it were alone
                gradient *= (clip / torch.linalg.vector_norm(gradient)).clamp_max(1.0)
        self._adamw.step(rate)
        return torch.cat(losses)

    def state(self) -> dict[str, Tensor]:
        """Weights and moments: all that the next step depends on."""
        return self._adamw.state()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned, in this process or in another."""
        self._adamw.restore(state)

    def predict(
        self, inputs: Shaped[Tensor, "1 batch length *token"], *, apart: bool = False
    ) -> Float[Tensor, "members batch *outputs"]:
        """Outputs of the current weights on inputs that all share, without gradients.

        `apart`: one member after the other, however they are stacked for the steps.
        """
        stacks = [leaves for _, leaves in self._stacks]
        if apart:
            everyone = self._stacks[-1][0].stop
            stacks = [self._adamw.leaves(slice(m, m + 1)) for m in range(everyone)]
        with torch.no_grad():
            return torch.cat([self.shape.forward(leaves, inputs) for leaves in stacks])

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        return [
            copy_member(leaves, member)
            for members, leaves in self._stacks
            for member in range(members.stop - members.start)
        ]


def stackable(shape: TokenNetShape, training: Streaming) -> bool:
    """Do all members' matrices start on a vector boundary, in training and in validation?

    And has each of them, but for those that the shape says it sums in one order, more than one row
    and column?
    """
    matrices = {name: size for name, size in shape.parameter_shapes().items() if len(size) == 2}
    counts = [*map(prod, matrices.values()), training.batch, training.validation]
    aligned = all(count % _VECTOR == 0 for count in counts)
    multiplied = matrices.keys() - getattr(shape, "summed", frozenset())
    return aligned and all(min(matrices[name]) > 1 for name in multiplied)
