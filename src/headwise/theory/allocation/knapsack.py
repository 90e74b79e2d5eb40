"""Sharing out a budget: choose one option for every item, within a cost, at the least loss.

The multiple-choice knapsack. For a price λ ≥ 0 of a unit of cost every item can choose by itself,
and Σ min(loss + λ·cost) − λ·budget is a lower bound on the loss of any choice within the budget
(weak duality). The price at which it is largest is read off the lower convex hulls of the items'
(cost, loss) clouds: it is the slope of the step at which the budget runs out, when steps are taken
by loss saved a unit of cost. Taking those steps, and spending what is left on the best single
steps that still fit, gives a choice near the bound. The bound then rules out most options, and
what remains is solved exactly if it is small enough.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headwise.core.errors import InputError, require
from headwise.theory.allocation.exact import search
from headwise.theory.checks import number, numbers, sequence, shown

Array = np.ndarray


@dataclass(frozen=True)
class Item:
    """Options of one thing to decide; `costs` and `losses` are parallel."""

    costs: Float[Array, " options"]
    losses: Float[Array, " options"]

    def __post_init__(self) -> None:
        for name in ("costs", "losses"):
            value = getattr(self, name)
            numbers(name, value)
            if not isinstance(value, np.ndarray):  # to show an array takes longer than to check it
                raise InputError(f"{name} must be an array of numbers, not {shown(value)}")
        require(
            self.costs.shape == self.losses.shape and self.costs.ndim == 1 and len(self.costs) > 0,
            "an item has as many costs as losses, and at least one of each",
        )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One option an item. No choice within the budget has a loss below `loss - gap`."""

    options: tuple[int, ...]
    cost: float
    loss: float
    gap: float
    price: float  # loss saved by one more unit of budget, near this one

    @property
    def exact(self) -> bool:
        """Whether this is proved to be the best choice."""
        return self.gap == 0


def choose(items: Sequence[Item], budget: float, *, exact: bool = True) -> Choice:
    """The choice of least loss within the budget: proved so, or with the gap that is left.

    `exact=False` stops at the hulls, which is faster and enough where options are many and small.
    """
    items, budget = sequence("items", items, Item, "items"), number("budget", budget)
    require(len(items) > 0, "there is nothing to choose: give at least one item")
    hulls = [lower_hull(item) for item in items]
    least = sum(float(item.costs.min()) for item in items)
    require(
        least <= budget,
        f"the budget of {budget:,.0f} is below the smallest possible one, {least:,.0f}",
    )
    options, price = _along_hulls(items, hulls, budget)
    loss = _total(items, options, "losses")
    bound = lower_bound(items, budget, price)
    gap = max(0.0, loss - bound)
    if gap > 0 and exact:
        found = search(items, budget, price, bound, loss)
        if found.finished:
            options, gap = found.options or options, 0.0
    return Choice(
        options=tuple(options),
        cost=_total(items, options, "costs"),
        loss=_total(items, options, "losses"),
        gap=gap,
        price=price,
    )


def lower_bound(items: Sequence[Item], budget: float, price: float) -> float:
    """No choice within the budget has less loss than this, whatever the price ≥ 0.

    −∞, which says nothing, where the sum exceeds double precision.
    """
    items, budget = sequence("items", items, Item, "items"), number("budget", budget)
    require((price := number("price", price)) >= 0, f"price is {price:g}; it is at least 0")
    with np.errstate(over="ignore"):
        found = sum(float((i.losses + price * i.costs).min()) for i in items) - price * budget
    return found if np.isfinite(found) else -np.inf


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


def _total(items: Sequence[Item], options: Sequence[int], what: str) -> float:
    return sum(float(getattr(item, what)[o]) for item, o in zip(items, options, strict=True))


def _along_hulls(
    items: Sequence[Item], hulls: list[list[int]], budget: float
) -> tuple[list[int], float]:
    """Steps along the hulls by loss saved a unit of cost; and the price where the budget ends."""
    chosen = [hull[0] for hull in hulls]
    spent = _total(items, chosen, "costs")
    steps = []
    for index, (item, hull) in enumerate(zip(items, hulls, strict=True)):
        for here, there in itertools.pairwise(hull):
            cost = float(item.costs[there] - item.costs[here])
            slope = float(item.losses[here] - item.losses[there]) / cost
            steps.append((slope, index, there, cost))
    price = 0.0
    for slope, index, there, cost in sorted(steps, key=lambda step: -step[0]):
        if spent + cost > budget:
            price = slope
            break
        chosen[index] = there
        spent += cost
    return _spend_the_rest(items, chosen, budget - spent), price


def _spend_the_rest(items: Sequence[Item], chosen: list[int], left: float) -> list[int]:
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
