"""The linear maps of a reduced layer: dense, or the product of two thin ones.

A product B·A of inner rank r is the same as (B G)·(G⁻¹ A) for every r × r matrix G. With G⁻¹ some r
rows of B, those rows become the identity's and r² numbers less are to be stored.
"""

from typing import cast

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite, LinearPart
from headwise.pretrained.plan.shapes import LayerLayout


class Factored(nn.Sequential):
    """The product of two thin linear maps, without a module's overhead for each."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The two maps, one after the other."""
        thin, wide = cast("list[nn.Linear]", list(self._modules.values()))
        return nn.functional.linear(
            nn.functional.linear(inputs, thin.weight, None), wide.weight, wide.bias
        )


class Pivoted(nn.Sequential):
    """Some outputs by a thin map, the others from those; then all in their `order`."""

    order: Tensor

    def __init__(self, inputs: int, outputs: int, rank: int, bias: bool) -> None:
        first = nn.Linear(inputs, rank, bias=bias)
        super().__init__(first, nn.Linear(rank, outputs - rank, bias=bias))
        self.register_buffer("order", torch.arange(outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Pivots, what follows from them, each at its place."""
        first, others = cast("list[nn.Linear]", list(self._modules.values()))
        pivots = nn.functional.linear(inputs, first.weight, first.bias)
        follow = nn.functional.linear(pivots, others.weight, others.bias)
        return torch.cat([pivots, follow], dim=-1).index_select(-1, self.order)


def pivoted(thin: LinearPart, wide: LinearPart) -> tuple[list[LinearPart], Tensor | None]:
    """The product wide·thin as the weights and the order of a `Pivoted`, or dense (of few heads).

    Pivots are chosen by QR with column pivoting, one after the other the row that is farthest from
    what the rows before span, so that the others follow from them by small numbers.
    """
    from scipy.linalg import qr

    rank, product = thin.weight.shape[0], wide.weight @ thin.weight
    if rank >= len(product):
        return [LinearPart(product, wide.bias)], None
    basis = torch.linalg.qr(wide.weight).Q
    _, columns = qr(basis.T.cpu().numpy(), mode="r", pivoting=True)
    order = torch.from_numpy(columns).to(product.device, torch.long)
    pivots, rest = order[:rank], order[rank:]
    follow = torch.linalg.solve(basis[pivots].T, basis[rest].T).T
    first = later = None
    if wide.bias is not None:
        first, later = wide.bias[pivots], wide.bias[rest] - follow @ wide.bias[pivots]
    return [LinearPart(product[pivots], first), LinearPart(follow, later)], order.argsort()


def projection(
    inputs: int, outputs: int, bias: bool, rank: int | None, pivoted: bool = False
) -> nn.Module:
    """Dense, or the product of two thin factors."""
    if rank is None or (pivoted and rank >= outputs):
        return nn.Linear(inputs, outputs, bias=bias)
    if pivoted:
        return Pivoted(inputs, outputs, rank, bias)
    return Factored(nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=bias))


def output_projection(site: AttentionSite, layout: LayerLayout) -> nn.Module:
    """From the heads' contexts, side by side, to the hidden state."""
    shape = layout.shape
    width = sum(len(group.heads) * group.v_dim for group in shape.groups)
    return projection(width, site.hidden, "output" in layout.biases, shape.output_rank)


def refuse_stock(attention: nn.Module, site: AttentionSite) -> None:
    """Make plain transformers refuse the checkpoint, which would open it with random attention.

    It fills weights that it does not find with random numbers, and warns; but a weight of another
    size is an error. So an empty one stands under each of the original's names that has none.
    """
    for path in (site.query.path, site.key.path, site.value.path, site.output):
        name = path.removeprefix(site.path + ".")
        if "." in name:  # elsewhere in the model, or deeper than one module
            continue
        if name not in attention._modules:
            attention.add_module(name, nn.Module())
        holder = attention.get_submodule(name)
        if not hasattr(holder, "weight"):
            holder.register_buffer("weight", torch.empty(0))
