"""The best choice of all, where few enough are left: undominated prefixes, pruned by duality.

Items are taken one after the other. A prefix of choices is kept unless another costs no more and
loses no more, or unless its cost does not leave room for the rest, or unless its own loss and the
dual bound of the rest show that it cannot beat the best choice known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Array = np.ndarray

LARGEST_STEP = 200_000
"""Prefixes × options looked at for one item; beyond it the search gives up. A few milliseconds."""


class _Options(Protocol):
    @property
    def costs(self) -> Array: ...

    @property
    def losses(self) -> Array: ...


@dataclass(frozen=True)
class Search:
    """`finished`: all was looked at. `options`: a choice better than the known one, if any."""

    finished: bool
    options: list[int] | None = None


def search(
    items: Sequence[_Options], budget: float, price: float, bound: float, known: float
) -> Search:
    """Look for a choice within the budget whose loss is below `known`.

    `bound` is the dual bound at `price`. Reduced loss r = loss + price·cost − its minimum over the
    item's options is what an option adds to that bound, so a prefix's bound is `bound` + Σ r.
    """
    room = known - bound
    kept, reduced = [], []
    for item in items:
        priced = item.losses + price * item.costs
        above = priced - priced.min()
        kept.append(np.flatnonzero(above <= room))
        reduced.append(above)
    # Large differences first: they prune most.
    order = sorted(range(len(items)), key=lambda index: len(kept[index]))
    least_rest = np.cumsum([items[i].costs[kept[i]].min() for i in reversed(order)])[::-1]
    cost, loss, above = np.zeros(1), np.zeros(1), np.zeros(1)
    trail: list[tuple[Array, Array]] = []  # for every prefix, its parent and its last option
    for step, index in enumerate(order):
        item, options = items[index], kept[index]
        if len(cost) * len(options) > LARGEST_STEP:
            return Search(finished=False)
        rest = least_rest[step + 1] if step + 1 < len(order) else 0.0
        new_cost = (cost[:, None] + item.costs[options]).ravel()
        new_loss = (loss[:, None] + item.losses[options]).ravel()
        new_above = (above[:, None] + reduced[index][options]).ravel()
        alive = np.flatnonzero((new_cost + rest <= budget) & (new_above < room))
        alive = alive[_undominated(new_cost[alive], new_loss[alive])]
        if len(alive) == 0:
            return Search(finished=True)
        cost, loss, above = new_cost[alive], new_loss[alive], new_above[alive]
        trail.append((alive // len(options), options[alive % len(options)]))
    best = int(loss.argmin())
    if loss[best] >= known:
        return Search(finished=True)
    chosen = [0] * len(items)
    for index, (parents, options) in zip(reversed(order), reversed(trail), strict=True):
        chosen[index] = int(options[best])
        best = int(parents[best])
    return Search(finished=True, options=chosen)


def _undominated(cost: Array, loss: Array) -> Array:
    """Indices of the prefixes for which no other costs and loses as little."""
    order = np.lexsort((loss, cost))
    sorted_loss = loss[order]
    lowest = np.minimum.accumulate(sorted_loss)
    better = np.ones(len(order), bool)
    better[1:] = sorted_loss[1:] < lowest[:-1]
    return order[better]
