"""What people do without headwise, under the same interface, so that anyone can compare.

- `uniform-svd`: every head to the same size by the SVD of its weights alone; with RoPE, the pairs
  of largest weight norm.
- `prune-heads`: remove the heads with the smallest gradient importance (Michel et al. 2019, with
  the squared gate gradient).
- `taylor`: remove the heads with the smallest first-order scores, E|Σ c·g| of their gates.
- `random`: remove heads at random.
- `svd-llm`, `modegpt`: see `peers`.
"""

from dataclasses import replace

import numpy as np
import torch

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import Budget, total
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.cutting import resized, without
from headwise.pretrained.plan.peers import (
    modegpt_reductions,
    plain_pairs,
    require_one_sequence,
    svd_llm_reductions,
    svd_llm_shapes,
)
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.reductions import LayerReductions, PairOrder, narrowing
from headwise.pretrained.plan.shapes import LayerShape, full_shape


def baseline_plan(measurement: Measurement, budget: Budget, method: str) -> CompressionPlan:
    """The baseline's plan within the budget."""
    if method == "svd-llm":
        layers = svd_llm_shapes(measurement, budget)
    elif method in ("uniform-svd", "modegpt"):
        layers = _uniform(measurement, budget, method)
    else:
        layers = _pruned(measurement, budget, method)
    return CompressionPlan(
        model=measurement.identity,
        method=method,
        layers=layers,
        budget={"counts": budget.counts, "fraction": budget.fraction},
        seed=measurement.seed,
    )


def baseline_reductions(measurement: Measurement, method: str) -> list[LayerReductions]:
    """How the baseline cuts: by weights alone, or (heads are only removed) with nothing kept."""
    layers = []
    for site, layer in zip(measurement.sites, measurement.reductions, strict=True):
        moments = replace(layer.moments, context_mean=torch.zeros_like(layer.moments.context_mean))
        layer = replace(layer, moments=moments)
        if method == "uniform-svd":
            layer = _weights_only(site, layer)
        elif method == "modegpt":
            layer = modegpt_reductions(site, layer)
        elif method == "svd-llm":
            layer = svd_llm_reductions(layer)
        layers.append(replace(layer, moments=replace(layer.moments, all_context=None)))
    return layers


def _weights_only(site: AttentionSite, layer: LayerReductions) -> LayerReductions:
    """Moments as if inputs and gradients were white: then the narrowing is the weights' own SVD."""
    weights, dim = layer.weights, site.head_dim
    query, key = _by_head(weights.query.weight, dim), _by_head(weights.key.weight, dim)
    value = _by_head(weights.value.weight, dim)
    value_moment = value @ value.mT
    output = _by_head(weights.output.weight.T, dim)
    output_moment = output @ output.mT
    moments = replace(layer.moments, context=value_moment.repeat_interleave(site.group_size, dim=0))
    values = narrowing(
        torch.unflatten(output_moment, 0, (-1, site.group_size)).sum(1), value_moment
    )
    if not site.rotary:
        queries = narrowing(key @ key.mT, query @ query.mT)
        return replace(layer, moments=moments, values=values, queries=queries)
    pairs = [_largest_pairs(query, key, group, site) for group in range(site.kv_heads)]
    return replace(layer, moments=moments, values=values, pairs=pairs)


def _by_head(weight: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.unflatten(weight.double(), 0, (-1, dim))


def _largest_pairs(
    query: torch.Tensor, key: torch.Tensor, group: int, site: AttentionSite
) -> PairOrder:
    heads = query[group * site.group_size : (group + 1) * site.group_size]
    of_query = torch.unflatten(heads.square().sum((0, 2)), 0, (2, -1)).sum(0)
    of_key = torch.unflatten(key[group].square().sum(1), 0, (2, -1)).sum(0)
    return plain_pairs(of_query * of_key, site.group_size)


def _cost(measurement: Measurement, shapes: list[LayerShape], counts: str) -> int:
    parts = zip(measurement.sites, shapes, measurement.reductions, strict=True)
    return sum(
        shape_cost(site, shape, layer.weights, counts, means=False) for site, shape, layer in parts
    )


def _uniform(measurement: Measurement, budget: Budget, method: str) -> tuple[LayerShape, ...]:
    sites = measurement.sites
    if method == "modegpt":
        require_one_sequence(sites, method)
    limit = budget.fraction * total(measurement, budget.counts)
    step = 2 if any(site.rotary for site in sites) else 1
    widest = max(site.head_dim for site in sites)
    largest = range(widest, 0, -step)
    # Equal sizes, or values one step larger: as near to the budget as uniformity allows.
    for qk_dim, v_dim in ((q, v) for q in largest for v in (q + step, q) if v <= widest):
        shapes = [
            resized(full_shape(site), min(qk_dim, site.head_dim), min(v_dim, site.head_dim))
            for site in sites
        ]
        if _cost(measurement, shapes, budget.counts) <= limit:
            return tuple(shapes)
    whole = any(site.norm is not None for site in sites)
    raise InputError(
        f"keeping {100 * budget.fraction:.1f} % leaves {method} less than one dimension a head"
        + (" (a norm on queries and keys leaves their matrices whole)" if whole else "")
    )


def _pruned(measurement: Measurement, budget: Budget, method: str) -> tuple[LayerShape, ...]:
    """Remove heads one by one (whole key groups where the cache is counted) until it fits."""
    limit = budget.fraction * total(measurement, budget.counts)
    shapes = [full_shape(site) for site in measurement.sites]
    candidates: list[tuple[float, int, tuple[int, ...]]] = []
    rng = np.random.default_rng([measurement.seed, 1])
    for layer, site in enumerate(measurement.sites):
        scores = _scores(measurement, layer, method, rng)
        per = site.group_size if budget.counts == "cache" else 1
        for first in range(0, site.heads, per):
            heads = tuple(range(first, first + per))
            candidates.append((float(scores[list(heads)].sum()), layer, heads))
    for _, layer, heads in sorted(candidates):
        if _cost(measurement, shapes, budget.counts) <= limit:
            break
        left = without(shapes[layer], heads)
        if any(group.heads for group in left.groups):
            shapes[layer] = left
    require(
        _cost(measurement, shapes, budget.counts) <= limit,
        f"keeping {100 * budget.fraction:.1f} % would remove every head of a layer",
    )
    return tuple(shapes)


def _scores(
    measurement: Measurement, layer: int, method: str, rng: np.random.Generator
) -> np.ndarray:
    """What each head of a layer is worth to the method."""
    moments = measurement.reductions[layer].moments
    if method == "taylor":
        return moments.gate_size.numpy()
    if method == "prune-heads":
        return moments.gate_square.numpy()
    return rng.random(measurement.sites[layer].heads)
