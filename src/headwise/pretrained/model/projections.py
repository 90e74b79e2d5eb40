"""The linear maps of a reduced layer: dense, or the product of two thin ones."""

from typing import cast

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.model.pivots import Pivoted, PivotedHeads
from headwise.pretrained.plan.shapes import LayerLayout, kept_order, keys_hold_identities


class Factored(nn.Sequential):
    """The product of two thin linear maps, without a module's overhead for each."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The two maps, one after the other."""
        thin, wide = cast("list[nn.Linear]", list(self._modules.values()))
        return nn.functional.linear(
            nn.functional.linear(inputs, thin.weight, None), wide.weight, wide.bias
        )


def projection(
    inputs: int, outputs: int, bias: bool, rank: int | None, pivoted: bool = False
) -> nn.Module:
    """Dense, or the product of two thin factors."""
    if rank is None or (pivoted and rank >= outputs):
        return nn.Linear(inputs, outputs, bias=bias)
    if pivoted:
        return Pivoted(inputs, outputs, rank, bias)
    return Factored(nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=bias))


def input_projections(
    site: AttentionSite, layout: LayerLayout, queries: int, keys: int, values: int
) -> tuple[nn.Module, nn.Module, nn.Module]:
    """From the hidden state to so many queries, keys and values."""
    shape, biases, hidden = layout.shape, layout.biases, site.hidden
    kept = [shape.groups[index] for index in kept_order(shape)]
    query = projection(hidden, queries, "query" in biases, shape.query_rank, shape.pivoted)
    if keys_hold_identities(site, shape):
        key: nn.Module = PivotedHeads(hidden, [group.qk_dim for group in kept])
    else:
        key = projection(hidden, keys, "key" in biases, shape.key_rank, shape.pivoted)
    if shape.pivoted_heads:
        return query, key, PivotedHeads(hidden, [group.v_dim for group in kept])
    return query, key, projection(hidden, values, "value" in biases, shape.value_rank)


def output_projection(site: AttentionSite, layout: LayerLayout) -> nn.Module:
    """From the heads' contexts, side by side, to the hidden state."""
    shape = layout.shape
    width = sum(len(group.heads) * group.v_dim for group in shape.groups)
    return projection(width, site.hidden, "output" in layout.biases, shape.output_rank)


def columns_of(projections: tuple[nn.Module, ...], inputs: Tensor) -> Tensor:
    """What these give, side by side; `order_of` says where each column is found."""
    parts = list[Tensor]()
    for made_by in projections:
        parts += made_by.parts(inputs) if isinstance(made_by, Pivoted) else (made_by(inputs),)
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def order_of(projections: tuple[nn.Module, ...], widths: list[int]) -> Tensor:
    """The place of each column, of so many a projection, in `columns_of`; of none, its own."""
    orders, start = [torch.arange(0)], 0
    for index, width in enumerate(widths):
        made_by = projections[index] if projections else None
        own = made_by.order if isinstance(made_by, Pivoted) else torch.arange(width)
        orders.append(start + own)
        start += width
    return torch.cat(orders)


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
