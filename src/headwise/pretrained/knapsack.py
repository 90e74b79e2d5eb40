"""Sharing out a budget: choose one option for every item, within a cost, at the least loss.

The multiple-choice knapsack. On the lower convex hulls of the items' (cost, loss) clouds the
greedy order by loss saved a unit of cost is optimal wherever it stops exactly at the budget; what
is left over is spent on the best single steps that still fit. So the gap to the optimum is at most
one hull step.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headwise.errors import require


@dataclass(frozen=True)
class Item:
    """Options of one thing to decide; `costs` and `losses` are parallel."""

    costs: Float[np.ndarray[Any, Any], " options"]
    losses: Float[np.ndarray[Any, Any], " options"]


def choose(items: list[Item], budget: float) -> list[int]:
    """One option index per item, total cost within the budget, total loss near the least."""
    hulls = [lower_hull(item) for item in items]
    chosen = [hull[0] for hull in hulls]
    spent = sum(float(item.costs[c]) for item, c in zip(items, chosen, strict=True))
    require(
        spent <= budget,
        f"the budget of {budget:,.0f} is below the smallest possible size, {spent:,.0f}",
    )
    steps = []
    for index, (item, hull) in enumerate(zip(items, hulls, strict=True)):
        for here, there in itertools.pairwise(hull):
            cost = item.costs[there] - item.costs[here]
            steps.append(((item.losses[here] - item.losses[there]) / cost, index, there, cost))
    for _, index, there, cost in sorted(steps, key=lambda step: -step[0]):
        if spent + cost > budget:
            break
        chosen[index] = there
        spent += cost
    return _spend_the_rest(items, chosen, budget - spent)


def lower_hull(item: Item) -> list[int]:
    """Options on the lower convex hull, from the cheapest to the least loss."""
    order = np.lexsort((item.losses, item.costs))
    hull: list[int] = []
    for index in order:
        cost, loss = item.costs[index], item.losses[index]
        if hull and (loss >= item.losses[hull[-1]] or cost == item.costs[hull[-1]]):
            continue
        while len(hull) >= 2 and _above(item, hull[-2], hull[-1], int(index)):
            hull.pop()
        hull.append(int(index))
    return hull


def _above(item: Item, a: int, b: int, c: int) -> bool:
    """Whether option b lies on or above the segment from a to c."""
    left = (item.losses[a] - item.losses[b]) * (item.costs[c] - item.costs[a])
    right = (item.losses[a] - item.losses[c]) * (item.costs[b] - item.costs[a])
    return bool(left <= right)


def _spend_the_rest(items: list[Item], chosen: list[int], left: float) -> list[int]:
    while True:
        best: tuple[float, int, int] | None = None
        for index, item in enumerate(items):
            gain = item.losses[chosen[index]] - item.losses
            extra = item.costs - item.costs[chosen[index]]
            gain = np.where(extra <= left, gain, -np.inf)
            option = int(gain.argmax())
            if gain[option] > 0 and (best is None or gain[option] > best[0]):
                best = (float(gain[option]), index, option)
        if best is None:
            return chosen
        _, index, option = best
        left -= float(items[index].costs[option] - items[index].costs[chosen[index]])
        chosen[index] = option
