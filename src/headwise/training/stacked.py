"""The stacked engine: members of one shape as one torch program, on any device.

Bitwise independence of neighbours. Batched torch operations treat members alike but not
bit-for-bit alike: vectorised loops have scalar tails, and a product may use another kernel for
another batch size. So the stack always has the same number of lanes, a member's lane is fixed by
its seed, and an empty lane is filled with a copy of another member. Then a member is computed by
the same instructions on the same alignment whoever trains beside it.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.nets import ClassTokenShape
from headwise.training.engine import Dataset
from headwise.training.training import Training

_ALIGN = 64  # floats; every member's weights start on a vector boundary
_PREDICT_FLOATS = 1 << 22  # largest hidden layer held at once in prediction


def lanes(shape: ClassTokenShape) -> int:
    """Members in a stack. One layer is bound by overhead, so more pay; several, by arithmetic."""
    return 8 if len(shape.layers) == 1 else 4


class StackedEngine:
    """Members of one shape and their AdamW; a member lives in lane seed mod lanes(shape)."""

    name = "stacked"

    def __init__(
        self,
        shape: ClassTokenShape,
        training: Training,
        params: Sequence[dict[str, Tensor]],
        seeds: Sequence[int],
        device: str = "cpu",
    ) -> None:
        self._shape, self._training, self._count = shape, training, lanes(shape)
        self._lanes = [seed % self._count for seed in seeds]
        tenants = {lane: member for member, lane in enumerate(self._lanes)}
        require(len(tenants) == len(seeds), "two seeds of one stack share a lane")
        self._tenants = [tenants.get(lane, 0) for lane in range(self._count)]
        filled = [params[member] for member in self._tenants]
        sizes = shape.parameter_shapes()
        total = sum(prod(size) for size in sizes.values())
        self._flat = torch.zeros(self._count, -(-total // _ALIGN) * _ALIGN, device=device)
        self._gradient = torch.zeros_like(self._flat)
        self._leaves: dict[str, Tensor] = {}
        start = 0
        for name, size in sizes.items():
            stop = start + prod(size)
            self._flat[:, start:stop] = torch.stack([member[name].flatten() for member in filled])
            leaf = self._flat[:, start:stop].view(self._count, *size)
            self._leaves[name] = leaf.detach().requires_grad_()
            start = stop
        self._total = total
        self._flat.grad = self._gradient
        self._adam = torch.optim.AdamW(
            [self._flat], lr=1.0, weight_decay=training.weight_decay, fused=True
        )

    def advance(
        self,
        data: Dataset,
        order: Int[np.ndarray, "members steps batch"],
        rates: Float[np.ndarray, " steps"],
    ) -> Float[np.ndarray, "members steps"]:
        device = self._flat.device
        inputs, targets = data.inputs.to(device), data.targets.to(device)
        rows = torch.from_numpy(order[self._tenants]).to(device)  # (lanes, steps, batch)
        losses = torch.empty(self._count, len(rates), device=device)
        for step, rate in enumerate(rates):
            losses[:, step] = self._step(inputs[rows[:, step]], targets[rows[:, step]], rate)
        return losses[self._lanes].cpu().numpy()

    def _step(self, inputs: Tensor, targets: Tensor, rate: float) -> Tensor:
        outputs = self._shape.forward(self._leaves, inputs)
        loss = member_loss(outputs, targets, self._training.loss)
        gradients = torch.autograd.grad(loss.sum(), list(self._leaves.values()), allow_unused=True)
        parts = [
            torch.zeros_like(leaf).flatten(1) if gradient is None else gradient.flatten(1)
            for leaf, gradient in zip(self._leaves.values(), gradients, strict=True)
        ]
        torch.cat(parts, 1, out=self._gradient[:, : self._total])
        norms = self._gradient.norm(dim=1, keepdim=True)
        self._gradient.mul_((self._training.clip / (norms + 1e-6)).clamp(max=1.0))
        self._adam.param_groups[0]["lr"] = float(rate)
        self._adam.step()
        return loss.detach()

    def predict(
        self, inputs: Float[Tensor, "count length token_dim"]
    ) -> Float[Tensor, "members count outputs"]:
        shape = self._shape
        widest = max((shape.embed_dim, *shape.embed.widths))
        rows = _PREDICT_FLOATS // (self._count * inputs.shape[1] * widest)
        chunks = inputs.to(self._flat.device).split(max(1, rows))
        with torch.no_grad():
            outputs = [shape.forward(self._leaves, chunk.unsqueeze(0)) for chunk in chunks]
        return torch.cat(outputs, 1)[self._lanes].cpu()

    def params(self) -> list[dict[str, Tensor]]:
        return [
            {name: leaf[lane].detach().cpu().clone() for name, leaf in self._leaves.items()}
            for lane in self._lanes
        ]


def member_loss(
    outputs: Float[Tensor, "members batch outputs"],
    targets: Float[Tensor, "#members batch outputs"],
    kind: str,
) -> Float[Tensor, " members"]:
    """One loss a member: mean squared error, or cross-entropy to the target distribution."""
    if kind == "mse":
        return (outputs - targets).square().mean((1, 2))
    return -(targets * functional.log_softmax(outputs, -1)).sum(-1).mean(1)
