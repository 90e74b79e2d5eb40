"""Cut a layer's weights to a shape, and put the reduced module into the model."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite, LinearPart
from headwise.pretrained.model.attention import CompressedAttention, output_projection
from headwise.pretrained.plan.reductions import Factor, LayerReductions, pair_maps
from headwise.pretrained.plan.shapes import GroupShape, LayerLayout, LayerShape, buckets, kept_order

State = dict[str, Tensor]


class CutLayer(NamedTuple):
    """A reduced layer: its layout, and its weights named as in `CompressedAttention`."""

    layout: LayerLayout
    state: State


def cut_layer(site: AttentionSite, reductions: LayerReductions, shape: LayerShape) -> CutLayer:
    """Cut one layer to `shape`."""
    projections = {
        "query": _query(site, reductions, shape),
        "key": _key(site, reductions, shape),
        **_value_output(site, reductions, shape),
    }
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
    state: State = {}
    for role, parts in projections.items():
        for index, affine in enumerate(parts):
            name = names[role] if len(parts) == 1 else f"{names[role]}.{index}"
            state[f"{name}.weight"] = affine.weight.float().contiguous()
            if affine.bias is not None:
                state[f"{name}.bias"] = affine.bias.float().contiguous()
    biases = tuple(role for role, parts in projections.items() if parts[-1].bias is not None)
    state |= _rotary_columns(site, reductions, shape)
    return CutLayer(LayerLayout(shape=shape, biases=biases), state)


def install(model: nn.Module, site: AttentionSite, layout: LayerLayout) -> CompressedAttention:
    """Replace the layer's attention by an empty reduced one."""
    module = CompressedAttention(site, layout, model.config)
    model.set_submodule(site.path, module)
    if not site.output_inside:
        model.set_submodule(site.output, output_projection(site, layout))
    return module


def fill(model: nn.Module, site: AttentionSite, state: State, like: Tensor) -> None:
    """Load a cut layer's weights into its installed module, at the device and type of `like`."""
    module = model.get_submodule(site.path)
    inside = dict(state)
    if not site.output_inside:
        output = model.get_submodule(site.output)
        output.load_state_dict(
            {name: inside.pop(f"o_proj.{name}") for name in list(output.state_dict())}
        )
        output.to(like.device, like.dtype)
    columns = {k: v for k, v in module.state_dict().items() if k.endswith("_columns")}
    module.load_state_dict(columns | inside)
    module.to(like.device, like.dtype)


def _kept(shape: LayerShape) -> list[tuple[int, GroupShape]]:
    return [(index, shape.groups[index]) for index in kept_order(shape)]


def _rows(affine: LinearPart, head: int, dim: int) -> LinearPart:
    rows = slice(head * dim, (head + 1) * dim)
    bias = None if affine.bias is None else affine.bias[rows].double()
    return LinearPart(affine.weight[rows].double(), bias)


def _stack(parts: list[LinearPart]) -> LinearPart:
    biases = [part.bias for part in parts if part.bias is not None]
    bias = torch.cat(biases) if len(biases) == len(parts) else None
    return LinearPart(torch.cat([part.weight for part in parts]), bias)


def _mapped(matrix: Tensor, affine: LinearPart) -> LinearPart:
    bias = None if affine.bias is None else matrix @ affine.bias
    return LinearPart(matrix @ affine.weight, bias)


def _query(site: AttentionSite, reductions: LayerReductions, shape: LayerShape) -> list[LinearPart]:
    if shape.query_rank is not None:
        heads = [head for _, group in _kept(shape) for head in group.heads]
        factor, affine = reductions.query_factor, reductions.weights.query
        return _factored(site, reductions, affine, factor, shape.query_rank, heads)
    parts = []
    for index, group in _kept(shape):
        for head in group.heads:
            rows = _rows(reductions.weights.query, head, site.head_dim)
            parts.append(_narrow_query(site, reductions, rows, index, head, group.qk_dim))
    return [_stack(parts)]


def _narrow_query(
    site: AttentionSite,
    reductions: LayerReductions,
    rows: LinearPart,
    index: int,
    head: int,
    dim: int,
) -> LinearPart:
    if dim == site.head_dim:
        return rows
    if reductions.pairs is None:
        assert reductions.queries is not None
        return _mapped(reductions.queries.into[index, :dim], rows)
    turn, rows_kept = pair_maps(reductions.pairs[index], head % site.group_size, dim, site.head_dim)
    return _mapped(turn[rows_kept], rows)


def _key(site: AttentionSite, reductions: LayerReductions, shape: LayerShape) -> list[LinearPart]:
    affine = reductions.weights.key
    if not site.rotary:
        # A key bias adds the same number to all scores of a query: the softmax does not see it.
        affine = LinearPart(affine.weight, None)
    if shape.key_rank is not None:
        heads = [index for index, _ in _kept(shape)]
        factor = reductions.key_factor
        return _factored(site, reductions, affine, factor, shape.key_rank, heads)
    parts = []
    for index, group in _kept(shape):
        rows = _rows(affine, index, site.head_dim)
        if group.qk_dim == site.head_dim:
            parts.append(rows)
        elif reductions.pairs is None:
            assert reductions.queries is not None
            parts.append(_mapped(reductions.queries.back[index, :, : group.qk_dim].T, rows))
        else:
            _, chosen = pair_maps(reductions.pairs[index], 0, group.qk_dim, site.head_dim)
            bias = None if rows.bias is None else rows.bias[chosen]
            parts.append(LinearPart(rows.weight[chosen], bias))
    return [_stack(parts)]


def _rotary_columns(
    site: AttentionSite, reductions: LayerReductions, shape: LayerShape
) -> dict[str, Tensor]:
    columns = {}
    for number, bucket in enumerate(buckets(shape)):
        if site.rotary and bucket.qk_dim < site.head_dim:
            assert reductions.pairs is not None
            rows = [
                pair_maps(reductions.pairs[group], 0, bucket.qk_dim, site.head_dim)[1]
                for group in bucket.members
            ]
            columns[f"buckets.{number}.rotary_columns"] = torch.stack(rows)
    return columns


def _factored(
    site: AttentionSite,
    reductions: LayerReductions,
    affine: LinearPart,
    factor: Factor | None,
    rank: int,
    heads: list[int],
) -> list[LinearPart]:
    """Two factors of the kept heads' rows; what the mean input loses goes into the bias."""
    assert factor is not None
    assert reductions.moments.input_mean is not None
    left, right = factor.back[:, :rank], factor.into[:rank] @ affine.weight.double()
    mean = reductions.moments.input_mean
    bias = (affine.weight.double() - left @ right) @ mean
    if affine.bias is not None:
        bias = bias + affine.bias
    outer = _stack([_rows(LinearPart(left, bias), head, site.head_dim) for head in heads])
    return [LinearPart(right, None), outer]


def _value_output(
    site: AttentionSite, reductions: LayerReductions, shape: LayerShape
) -> dict[str, list[LinearPart]]:
    """Values into their best subspace, outputs back out of it; means and biases into one bias.

    Attention weights sum to one, so a value bias reaches the output unchanged. What is cut off of
    a head's context is replaced by its mean.
    """
    weights, dim = reductions.weights, site.head_dim
    bias = torch.zeros(site.hidden, dtype=torch.float64, device=weights.output.weight.device)
    values, outputs = [], {}
    changed = weights.output.bias is not None or weights.value.bias is not None
    for index, group in enumerate(shape.groups):
        rows = _rows(weights.value, index, dim)
        into = _value_map(reductions, index, group.v_dim, dim)
        values.append(into @ rows.weight)
        for head in range(index * site.group_size, (index + 1) * site.group_size):
            out = weights.output.weight[:, head * dim : (head + 1) * dim].double()
            width = group.v_dim if head in group.heads else 0
            mean = reductions.moments.context_mean[head]
            back = _value_back(site, reductions, index, head, into[:width])
            outputs[head] = out @ back
            bias += out @ (mean - back @ (into[:width] @ mean))
            if rows.bias is not None:
                bias += out @ back @ (into[:width] @ rows.bias)
            changed |= width < dim
    if weights.output.bias is not None:
        bias += weights.output.bias
    kept = _kept(shape)
    return {
        "value": [LinearPart(torch.cat([values[index] for index, _ in kept]), None)],
        "output": [
            LinearPart(
                torch.cat([outputs[head] for _, group in kept for head in group.heads], dim=1),
                bias if changed and bool(bias.any()) else None,
            )
        ],
    }


def _value_map(reductions: LayerReductions, group: int, width: int, dim: int) -> Tensor:
    if width == dim:
        return torch.eye(dim, dtype=torch.float64, device=reductions.values.into.device)
    return reductions.values.into[group, :width]


def _value_back(
    site: AttentionSite, reductions: LayerReductions, group: int, head: int, into: Tensor
) -> Tensor:
    """The map from reduced to full context that is best for this head, given the group's `into`.

    Minimising E‖c − L·into·c‖² in any metric over L is a regression: L = C intoᵀ (into C intoᵀ)⁻¹.
    With one head a group that is `values.back`.
    """
    width = into.shape[0]
    if width == site.head_dim:
        return into
    if site.group_size == 1:
        return reductions.values.back[group, :, :width]
    mean = reductions.moments.context_mean[head]
    covariance = reductions.moments.context[head] - torch.outer(mean, mean)
    inner = into @ covariance @ into.T
    ridge = inner.diagonal().mean() * 1e-7 + 1e-300 if width else 0.0
    inner = inner + ridge * torch.eye(width, dtype=inner.dtype, device=inner.device)
    back: Tensor = torch.linalg.solve(inner, into @ covariance).T
    return back


def replace_attention(model: Any, site: AttentionSite, cut: CutLayer) -> None:
    """Put a cut layer into the model, at the type and device of the layer it replaces."""
    like = model.get_submodule(site.output).weight.detach()
    module = install(model, site, cut.layout)
    module.train(model.training)
    fill(model, site, cut.state, like)
