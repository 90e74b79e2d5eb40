"""Members of one shape and their AdamW state, as one program.

Bitwise independence of neighbours. Unlike the lanes of `stacked.py`, whose arithmetic is too fine
to leave to chance, a token network's operations treat each member by itself: a matrix product a
member, softmax and norm a row, and elementwise sums, products and square roots, which round alike
in a vector and in its tail. A member's weights start on a vector boundary. So members are stacked
without empty lanes, and one member costs what one member costs.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.train.streaming import Streaming

_ALIGN = 64  # floats


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
        shape: TokenNetShape,
        training: Streaming,
        params: Sequence[Mapping[str, Tensor]],
        device: str = "cpu",
    ) -> None:
        self.shape = shape
        sizes = shape.parameter_shapes()
        self._total = sum(prod(size) for size in sizes.values())
        self._flat = torch.zeros(len(params), -(-self._total // _ALIGN) * _ALIGN, device=device)
        self._flat.grad = torch.zeros_like(self._flat)
        self.leaves: dict[str, Tensor] = {}
        start = 0
        for name, size in sizes.items():
            stop = start + prod(size)
            self._flat[:, start:stop] = torch.stack([member[name].flatten() for member in params])
            leaf = self._flat[:, start:stop].view(len(params), *size)
            self.leaves[name] = leaf.detach().requires_grad_()
            start = stop
        self._adam = torch.optim.AdamW(
            [self._flat], betas=training.betas, weight_decay=training.weight_decay, fused=True
        )

    def step(
        self,
        inputs: Float[Tensor, "members batch length token_dim"],
        targets: Float[Tensor, "members batch answers outputs"],
        answers: slice,
        rate: float,
    ) -> Float[Tensor, " members"]:
        """One step of AdamW on fresh sequences; returns each member's loss."""
        outputs = self.shape.forward(self.leaves, inputs)
        if outputs.shape[2] != targets.shape[2]:
            outputs = outputs[:, :, answers]
        # Squared error summed over coordinates; mean over answers.
        loss = (outputs - targets).square().sum(-1).mean((1, 2))
        gradients = torch.autograd.grad(loss.sum(), list(self.leaves.values()))
        assert self._flat.grad is not None
        parts = [gradient.flatten(1) for gradient in gradients]
        torch.cat(parts, 1, out=self._flat.grad[:, : self._total])
        self._adam.param_groups[0]["lr"] = rate
        self._adam.step()
        return loss.detach()

    def predict(
        self, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch tokens outputs"]:
        """Outputs of the current weights, without gradients."""
        with torch.no_grad():
            return self.shape.forward(self.leaves, inputs)

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        return [
            {name: leaf[member].detach().cpu().clone() for name, leaf in self.leaves.items()}
            for member in range(len(self._flat))
        ]
