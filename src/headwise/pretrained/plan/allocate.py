"""From a measurement and a budget to a plan: which head gets how much.

Options of a key group are its pairs (qk_dim, v_dim) and removal; a budget counts parameters or
cache. Where parameters of a model with RoPE are counted, queries and keys are instead reduced by
shared factors a layer (see `LayerShape`), which costs less loss for the same parameters.
"""

import math
from dataclasses import dataclass

import numpy as np

from headwise.core.errors import require
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.curves import LayerCurves
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.counts import (
    cache_elements,
    original_parameters,
    product_size,
)
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import GroupShape, LayerShape, full_shape, identity
from headwise.theory.allocation import Item, choose


@dataclass(frozen=True)
class Budget:
    """What may be kept: a `fraction` of attention `"parameters"` or of `"cache"` numbers."""

    fraction: float
    counts: str = "parameters"

    def __post_init__(self) -> None:
        require(
            isinstance(self.fraction, int | float) and 0 < self.fraction <= 1,
            f"the fraction to keep is {self.fraction}; it must be above 0 and at most 1",
        )


@dataclass
class _Decision:
    """One knapsack item and what its options do to the layer."""

    item: Item
    layer: int
    group: int | None  # a key group, or None for a shared factor
    role: str
    options: list[tuple[int, int] | int | None]


def allocate(measurement: Measurement, budget: Budget, step: int | None = None) -> CompressionPlan:
    """The plan with the least predicted damage within the budget."""
    if budget.fraction == 1:
        layers = tuple(full_shape(site) for site in measurement.sites)
        return _plan(measurement, budget, layers, 0.0)
    decisions = [
        decision
        for layer, (site, curves) in enumerate(
            zip(measurement.sites, measurement.curves, strict=True)
        )
        for decision in _decisions(measurement, layer, site, curves, budget.counts, step)
    ]
    whole, fixed = total(measurement, budget.counts), 0
    if budget.counts == "parameters":
        fixed = sum(_fixed(measurement, layer) for layer in range(len(measurement.sites)))
    least = (fixed + sum(float(decision.item.costs.min()) for decision in decisions)) / whole
    require(
        least <= budget.fraction,
        f"cannot keep {100 * budget.fraction:.2f} % of the attention's {budget.counts}: the least "
        f"is {math.ceil(1e4 * least) / 100:.2f} %, one head of the smallest size in every layer",
    )
    limit = budget.fraction * whole - fixed
    chosen = choose([decision.item for decision in decisions], limit).options
    damage = sum(float(d.item.losses[c]) for d, c in zip(decisions, chosen, strict=True))
    shapes = _shapes(measurement, decisions, chosen, budget.counts == "parameters")
    return _plan(measurement, budget, shapes, damage)


def total(measurement: Measurement, counts: str) -> int:
    """What the original model has of what the budget counts."""
    if counts == "cache":
        return sum(cache_elements(full_shape(site)) for site in measurement.sites)
    return sum(original_parameters(layer.weights) for layer in measurement.reductions)


def _fixed(measurement: Measurement, layer: int) -> int:
    """The output bias, which every reduced layer has."""
    return measurement.sites[layer].hidden


def default_step(site: AttentionSite) -> int:
    """Head sizes are multiples of this: an eighth of the original, at least 2 under RoPE."""
    return max(2 if site.rotary else 1, site.head_dim // 8)


def _decisions(
    measurement: Measurement,
    layer: int,
    site: AttentionSite,
    curves: LayerCurves,
    counts: str,
    step: int | None,
) -> list[_Decision]:
    step = step or default_step(site)
    sizes = list(range(step, site.head_dim + 1, step))
    if sizes[-1:] != [site.head_dim]:
        sizes.append(site.head_dim)
    shared = site.rotary and counts == "parameters"
    decisions = []
    bias = measurement.reductions[layer].weights.query.bias is not None
    key_bias = bias and site.rotary
    for group in range(site.kv_heads):
        pairs = [(d, s) for d in ([site.head_dim] if shared else sizes) for s in sizes]
        costs, losses = [0.0], [float(curves.values[group][0])]
        for qk_dim, v_dim in pairs:
            if counts == "cache":
                costs.append(qk_dim + v_dim)
            else:
                cost = v_dim * site.hidden * (1 + site.group_size)
                cost -= _pivots_heads(site) * identity(site.hidden, v_dim) ** 2
                if not shared:
                    cost += qk_dim * site.hidden * (1 + site.group_size)
                    cost += qk_dim * (site.group_size * bias + key_bias)
                    cost -= _pivots_heads(site) * identity(site.hidden, qk_dim) ** 2
                costs.append(cost)
            losses.append(float(curves.queries[group][qk_dim] + curves.values[group][v_dim]))
        item = Item(np.array(costs), np.array(losses))
        decisions.append(_Decision(item, layer, group, "group", [(0, 0), *pairs]))
    if shared:
        decisions += _factor_decisions(site, layer, curves, bias)
    return _keep_one(decisions)


def _pivots_heads(site: AttentionSite) -> bool:
    """Not in a decoder: the matrix that is written out would stay in memory beside the weights."""
    return not site.causal


def _factor_decisions(
    site: AttentionSite, layer: int, curves: LayerCurves, bias: bool
) -> list[_Decision]:
    """Ranks of the layer's query and key factors, in steps of a 36th of the rows; or dense."""
    decisions = []
    for role, curve, heads in (
        ("query", curves.query_factor, site.heads),
        ("key", curves.key_factor, site.kv_heads),
    ):
        assert curve is not None
        rows = heads * site.head_dim
        step, dense = max(1, rows // 36), rows * (site.hidden + bias)
        sizes = {
            rank: product_size(site.hidden, rows, rank, pivoted=True) + rows
            for rank in range(step, len(curve), step)
        }
        ranks = [rank for rank, size in sizes.items() if size < dense]
        item = Item(
            np.array([*(sizes[rank] for rank in ranks), dense], dtype=float),
            np.array([*(curve[rank] for rank in ranks), 0.0]),
        )
        decisions.append(_Decision(item, layer, None, role, [*ranks, None]))
    return decisions


def _keep_one(decisions: list[_Decision]) -> list[_Decision]:
    """Forbid the removal of the layer's most valuable group: a layer keeps at least one head."""
    groups = [decision for decision in decisions if decision.group is not None]
    best = max(groups, key=lambda decision: float(decision.item.losses[0]))
    best.item = Item(best.item.costs[1:], best.item.losses[1:])
    best.options = best.options[1:]
    return decisions


def _shapes(
    measurement: Measurement, decisions: list[_Decision], chosen: tuple[int, ...], padded: bool
) -> tuple[LayerShape, ...]:
    groups: list[list[GroupShape]] = [[] for _ in measurement.sites]
    ranks: list[dict[str, int | None]] = [{} for _ in measurement.sites]
    for decision, choice in zip(decisions, chosen, strict=True):
        option = decision.options[choice]
        if isinstance(option, tuple):
            qk_dim, v_dim = option
            assert decision.group is not None
            size = measurement.sites[decision.layer].group_size
            heads = tuple(range(decision.group * size, (decision.group + 1) * size))
            kept = GroupShape(heads=heads if v_dim else (), qk_dim=qk_dim, v_dim=v_dim)
            groups[decision.layer].append(kept)
        else:
            ranks[decision.layer][f"{decision.role}_rank"] = option
    return tuple(
        LayerShape(
            groups=tuple(parts),
            query_rank=rank.get("query_rank"),
            key_rank=rank.get("key_rank"),
            padded=padded,
            pivoted=any(rank.values()),
            pivoted_heads=padded and _pivots_heads(site),
        )
        for site, parts, rank in zip(measurement.sites, groups, ranks, strict=True)
    )


def _plan(
    measurement: Measurement, budget: Budget, layers: tuple[LayerShape, ...], damage: float
) -> CompressionPlan:
    return CompressionPlan(
        model=measurement.identity,
        method="fisher",
        layers=layers,
        budget={"counts": budget.counts, "fraction": budget.fraction},
        predicted_damage=damage,
        seed=measurement.seed,
    )
