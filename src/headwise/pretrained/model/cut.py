"""Cut a layer's weights to a shape."""

from typing import NamedTuple

import torch
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite, LinearPart
from headwise.pretrained.model.contexts import context_maps, value_map
from headwise.pretrained.model.pivots import pivoted, pivoted_heads
from headwise.pretrained.plan.reductions import Factor, LayerReductions, pair_maps
from headwise.pretrained.plan.shapes import (
    GroupShape,
    LayerLayout,
    LayerShape,
    buckets,
    kept_order,
    keys_hold_identities,
)

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
    state = _pivot_heads(site, shape, projections) if shape.pivoted_heads else {}
    for role, parts in projections.items():
        if shape.pivoted and len(parts) == 2:
            parts, order = pivoted(*parts)
            state |= {} if order is None else {f"{names[role]}.order": order}
        for index, affine in enumerate(parts):
            name = names[role] if len(parts) == 1 else f"{names[role]}.{index}"
            state[f"{name}.weight"] = affine.weight.float().contiguous()
            if affine.bias is not None:
                state[f"{name}.bias"] = affine.bias.float().contiguous()
    biases = tuple(role for role, parts in projections.items() if parts[-1].bias is not None)
    state |= _rotary_columns(site, reductions, shape)
    if shape.fused:
        state = _fused(state)
        biases = tuple({*biases, "query"} if "qkv_proj.bias" in state else biases)
    return CutLayer(LayerLayout(shape=shape, biases=biases), state)


def _pivot_heads(
    site: AttentionSite, shape: LayerShape, projections: dict[str, list[LinearPart]]
) -> State:
    """Put identities into values and keys, and what they were into outputs and queries."""
    kept = [group for _, group in _kept(shape)]

    def turned(role: str, sizes: list[int]) -> tuple[Tensor, Tensor]:
        packed, pivots, turns = pivoted_heads(projections[role][0].weight, sizes)
        projections[role] = [LinearPart(packed, None)]
        pairs = zip(kept, turns, strict=True)
        every = [turn for group, turn in pairs for _ in group.heads]
        return pivots, torch.block_diag(*every)

    pivots, turn = turned("value", [group.v_dim for group in kept])
    output = projections["output"][0]
    projections["output"] = [LinearPart(output.weight @ turn, output.bias)]
    state = {"v_proj.pivots": pivots}
    if keys_hold_identities(site, shape):
        pivots, turn = turned("key", [group.qk_dim for group in kept])
        projections["query"] = [_mapped(turn.T, projections["query"][0])]
        state["k_proj.pivots"] = pivots
    return state


def _fused(state: State) -> State:
    """Queries, keys and values as rows of one matrix; zeros where one of them has no bias."""
    names = ("q_proj", "k_proj", "v_proj")
    weights = [state.pop(f"{name}.weight") for name in names]
    biases = [state.pop(f"{name}.bias", None) for name in names]
    state["qkv_proj.weight"] = torch.cat(weights)
    if any(bias is not None for bias in biases):
        pairs = zip(weights, biases, strict=True)
        state["qkv_proj.bias"] = torch.cat(
            [weight.new_zeros(weight.shape[0]) if bias is None else bias for weight, bias in pairs]
        )
    return state


def _kept(shape: LayerShape) -> list[tuple[int, GroupShape]]:
    return [(index, shape.groups[index]) for index in kept_order(shape)]


def _rows(affine: LinearPart, head: int, dim: int) -> LinearPart:
    rows = slice(head * dim, (head + 1) * dim)
    bias = None if affine.bias is None else affine.bias[rows].double()
    return LinearPart(affine.weight[rows].double(), bias)


def _doubled(affine: LinearPart) -> LinearPart:
    return LinearPart(affine.weight.double(), None if affine.bias is None else affine.bias.double())


def _stack(parts: list[LinearPart]) -> LinearPart:
    biases = [part.bias for part in parts if part.bias is not None]
    bias = torch.cat(biases) if len(biases) == len(parts) else None
    return LinearPart(torch.cat([part.weight for part in parts]), bias)


def _mapped(matrix: Tensor, affine: LinearPart) -> LinearPart:
    bias = None if affine.bias is None else matrix @ affine.bias
    return LinearPart(matrix @ affine.weight, bias)


def _query(site: AttentionSite, reductions: LayerReductions, shape: LayerShape) -> list[LinearPart]:
    whole = site.norm is not None and site.norm.whole_layer
    if shape.query_rank is not None:
        heads = [head for _, group in _kept(shape) for head in group.heads]
        heads = list(range(site.heads)) if whole else heads
        factor, affine = reductions.query_factor, reductions.weights.query
        return _factored(site, reductions, affine, factor, shape.query_rank, heads)
    if whole:
        return [_doubled(reductions.weights.query)]
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
    if dim == site.head_dim or site.norm is not None:
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
    whole = site.norm is not None and site.norm.whole_layer
    if shape.key_rank is not None:
        heads = list(range(site.kv_heads)) if whole else [index for index, _ in _kept(shape)]
        factor = reductions.key_factor
        return _factored(site, reductions, affine, factor, shape.key_rank, heads)
    if whole:
        return [_doubled(affine)]
    parts = []
    for index, group in _kept(shape):
        rows = _rows(affine, index, site.head_dim)
        if group.qk_dim == site.head_dim or site.norm is not None:
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
    """Which pairs each narrowed head keeps, and (under a norm) the queries' gains on them."""
    state = {}
    for number, bucket in enumerate(buckets(shape)):
        if not site.rotary or bucket.qk_dim == site.head_dim:
            continue
        assert reductions.pairs is not None
        rows, gains = [], []
        for group in bucket.members:
            pairs = reductions.pairs[group]
            rows.append(pair_maps(pairs, 0, bucket.qk_dim, site.head_dim)[1])
            for head in shape.groups[group].heads:
                turn, kept = pair_maps(pairs, head % site.group_size, bucket.qk_dim, site.head_dim)
                first, second = kept.chunk(2)
                gains.append(torch.cat([turn[first, first], turn[second, first]]))
        columns = torch.stack(rows)
        if shape.fused:
            columns = torch.cat([columns.repeat_interleave(bucket.queries, dim=0), columns])
        state[f"buckets.{number}.rotary_columns"] = columns
        if site.norm is not None:
            state[f"buckets.{number}.query_gains"] = torch.stack(gains).float()
    return state


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
    biased = affine.bias is not None or bool(mean.any())
    outer = _stack([_rows(LinearPart(left, bias), head, site.head_dim) for head in heads])
    return [LinearPart(right, None), outer if biased else LinearPart(outer.weight, None)]


def _value_output(
    site: AttentionSite, reductions: LayerReductions, shape: LayerShape
) -> dict[str, list[LinearPart]]:
    """Values into their best subspace, outputs back out of it; means and biases into one bias.

    Attention weights sum to one, so a value bias reaches the output unchanged. What is cut off of
    a head's context is replaced by what the rest tells of it, which is its mean at least.
    """
    weights, dim = reductions.weights, site.head_dim
    if shape.value_rank is not None or shape.output_rank is not None:
        return {
            "value": _thin(weights.value, reductions.value_factor, shape.value_rank),
            "output": _thin(weights.output, reductions.output_factor, shape.output_rank),
        }
    values = [
        value_map(reductions, index, group.v_dim, dim) @ _rows(weights.value, index, dim).weight
        for index, group in _kept(shape)
    ]
    into, back = context_maps(site, reductions, shape)
    output = weights.output.weight.double()
    mean = reductions.moments.context_mean.flatten()
    bias = output @ (mean - back @ (into @ mean))
    if weights.value.bias is not None:
        by_head = torch.unflatten(weights.value.bias.double(), 0, (-1, dim))
        added = by_head.repeat_interleave(site.group_size, dim=0).flatten()
        bias += output @ (back @ (into @ added))
    if weights.output.bias is not None:
        bias += weights.output.bias
    changed = weights.output.bias is not None or weights.value.bias is not None
    changed |= len(into) < len(mean)
    kept = bias if changed and bool(bias.any()) else None
    return {
        "value": [LinearPart(torch.cat(values), None)],
        "output": [LinearPart(output @ back, kept)],
    }


def _thin(affine: LinearPart, factor: Factor | None, rank: int | None) -> list[LinearPart]:
    """A whole matrix as two factors, its bias as it was."""
    if rank is None:
        return [_doubled(affine)]
    assert factor is not None
    right = factor.into[:rank] @ affine.weight.double()
    return [LinearPart(right, None), LinearPart(factor.back[:, :rank], affine.bias)]
