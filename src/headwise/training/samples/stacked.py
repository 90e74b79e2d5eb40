"""The stacked engine: members of one shape as one torch program, on any device.

Bitwise independence of neighbours. Batched torch operations treat members alike but not
bit-for-bit alike: vectorised loops have scalar tails, and a product may use another kernel for
another batch size. So the stack always has the same number of lanes, a member's lane is fixed by
its seed, and an empty lane is filled with a copy of another member. Then a member is computed by
the same instructions on the same alignment whoever trains beside it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.nets import ClassTokenShape
from headwise.nets.pooled import SequenceNetShape
from headwise.training.adamw import FlatAdamW, copy_member
from headwise.training.samples.engine import Dataset, Losses, Order, Rates
from headwise.training.samples.specification import Training

_BETAS = (0.9, 0.999)  # of AdamW; the fused kernel has the same
_PREDICT_FLOATS = 1 << 22  # largest hidden layer held at once in prediction


def lanes(shape: SequenceNetShape) -> int:
    """Members in a stack. One layer is bound by overhead, so more pay; several, by arithmetic."""
    return 4 if isinstance(shape, ClassTokenShape) and len(shape.layers) > 1 else 8


class StackedEngine:
    """Members of one shape and their AdamW; a member lives in lane seed mod lanes(shape)."""

    name = "stacked"

    def __init__(
        self,
        shape: SequenceNetShape,
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
        self._adamw = FlatAdamW(shape, filled, _BETAS, training.weight_decay, device)
        self._leaves = self._adamw.leaves(slice(self._count))

    def advance(self, data: Dataset, order: Order, rates: Rates) -> Losses:
        """Take the steps; member m's step s uses the rows order[m, s]. Returns training losses."""
        device = self._adamw.device
        inputs, targets = data.inputs.to(device), data.targets.to(device)
        rows = torch.from_numpy(order[self._tenants]).to(device)  # (lanes, steps, batch)
        losses = torch.empty(self._count, len(rates), device=device)
        for step, rate in enumerate(rates):
            losses[:, step] = self._step(inputs[rows[:, step]], targets[rows[:, step]], rate)
        return losses[self._lanes].cpu().numpy()

    def _step(
        self,
        inputs: Float[Tensor, "lanes batch length token_dim"],
        targets: Float[Tensor, "lanes batch outputs"],
        rate: float,
    ) -> Float[Tensor, " lanes"]:
        outputs = self._shape.forward(self._leaves, inputs)
        loss = member_loss(outputs, targets, self._training.loss)
        self._adamw.gather(loss, self._leaves, slice(self._count))
        self._move(rate)
        return loss.detach()

    def _move(self, rate: float) -> None:
        """AdamW along the gathered gradients, scaled to a norm of at most `clip`."""
        norms = self._adamw.gradient.norm(dim=1, keepdim=True)
        self._adamw.gradient.mul_((self._training.clip / (norms + 1e-6)).clamp(max=1.0))
        self._adamw.step(float(rate))

    def predict(
        self, inputs: Float[Tensor, "count length token_dim"]
    ) -> Float[Tensor, "members count outputs"]:
        """Outputs of the current weights, without gradients, in bounded memory."""
        shape = self._shape
        widest = max((shape.embed_dim, *shape.embed.widths))
        rows = _PREDICT_FLOATS // (self._count * inputs.shape[1] * widest)
        chunks = inputs.to(self._adamw.device).split(max(1, rows))
        with torch.no_grad():
            outputs = [shape.forward(self._leaves, chunk.unsqueeze(0)) for chunk in chunks]
        return torch.cat(outputs, 1)[self._lanes].cpu()

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        return [copy_member(self._leaves, lane) for lane in self._lanes]


def member_loss(
    outputs: Float[Tensor, "members batch outputs"],
    targets: Float[Tensor, "#members batch outputs"],
    kind: str,
) -> Float[Tensor, " members"]:
    """One loss a member: mean squared error, or cross-entropy to the target distribution."""
    if kind == "mse":
        return (outputs - targets).square().mean((1, 2))
    return -(targets * functional.log_softmax(outputs, -1)).sum(-1).mean(1)
