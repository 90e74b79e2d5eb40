"""Plans for speed: one head size a layer, so that a layer is one call without padding.

Queries, keys and values of a layer have one size, a multiple of 8 (of 16 from size 128 on), and key
heads go only whole. The sizes differ between layers, by a knapsack over what each layer's options
cost in loss. One product then computes queries, keys and values (`LayerShape.fused`).
"""

from dataclasses import replace

import numpy as np

from headwise.core.errors import InputError
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import Budget, total
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.cutting import cut_to
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import LayerShape, full_shape
from headwise.theory.allocation import Item, choose


def fast_sizes(site: AttentionSite) -> list[int]:
    """Head sizes that attention computes quickly; of small heads, their eighths."""
    step = 16 if site.head_dim >= 128 else 8
    if site.head_dim <= 2 * step:
        step = max(2, site.head_dim // 8)
    return [*range(step, site.head_dim, step), site.head_dim]


def fast_plan(measurement: Measurement, budget: Budget) -> CompressionPlan:
    """One size for each layer, at the least predicted damage within the budget."""
    options, items = [], []
    for index, site in enumerate(measurement.sites):
        layer, curves = measurement.reductions[index], measurement.curves[index]
        shapes, costs, losses = [], [], []
        for heads in range(1, site.kv_heads + 1):
            for dim in fast_sizes(site):
                cut, loss = cut_to(site, curves, heads, dim, dim)
                shape = _fused(site, cut)
                shapes.append(shape)
                costs.append(shape_cost(site, shape, layer.weights, budget.counts))
                losses.append(loss)
        options.append(shapes)
        items.append(Item(np.array(costs, dtype=float), np.array(losses)))
    limit = budget.fraction * total(measurement, budget.counts)
    if budget.fraction == 1:
        chosen: tuple[int, ...] = tuple(len(shapes) - 1 for shapes in options)
    else:
        try:
            chosen = choose(items, limit).options
        except InputError as error:
            raise InputError(
                f"cannot keep {100 * budget.fraction:.1f} % of the attention with one size a "
                f"layer: {error}"
            ) from error
    damage = sum(float(item.losses[choice]) for item, choice in zip(items, chosen, strict=True))
    return CompressionPlan(
        model=measurement.identity,
        method="fisher",
        layers=tuple(shapes[choice] for shapes, choice in zip(options, chosen, strict=True)),
        budget={"counts": budget.counts, "fraction": budget.fraction, "fast": True},
        predicted_damage=damage,
        seed=measurement.seed,
    )


def _fused(site: AttentionSite, shape: LayerShape) -> LayerShape:
    if shape == full_shape(site) or site.norm is not None or site.cross:
        return shape
    return replace(shape, fused=True)
