"""From wished shares to shapes: whole heads, hardware's multiples, and the budget spent.

A layer's cost is 2·width·heads·(qk_dim + v_dim), so a budget is a number of units, heads ×
dimension. Heads are rounded first; then every layer's two dimensions are chosen among the multiples
around what its share asks for, such that as few units as possible are left over (a knapsack).
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from headwise.core.errors import require
from headwise.nets import AttentionShape
from headwise.theory.allocation import Item, choose, parameters

_AROUND = (-1, 0, 1, 2)  # multiples beside the wished one


Layers = tuple[AttentionShape, ...]
"""Attention layers, first to last: the one form of an allocation."""


class Wish(NamedTuple):
    """What a layer shall have: a share of the budget (in any unit) and a number of heads.

    A wish is not whole numbers yet, so it is no shape; it does not leave this room.
    """

    share: float
    heads: float


def attention_parameters(width: int, layers: Sequence[AttentionShape]) -> int:
    """Weights of all projections, without biases."""
    return sum(parameters(width, each.heads, each.qk_dim, each.v_dim) for each in layers)


def fitted(
    layers: Sequence[AttentionShape], *, width: int, budget: int, multiple: int = 4
) -> Layers:
    """The same heads and the same shares of the parameters, for another width or budget."""
    return fill([_wish(layer) for layer in layers], width=width, budget=budget, multiple=multiple)


def between(
    first: Sequence[AttentionShape],
    second: Sequence[AttentionShape],
    *,
    width: int,
    budget: int,
    multiple: int = 4,
) -> Layers:
    """Layers half-way between two: the geometric mean of their heads, and of their shares."""
    wishes = [_in_shares(layers) for layers in (first, second)]
    halfway = [
        Wish(share=sqrt(a.share * b.share), heads=sqrt(a.heads * b.heads))
        for a, b in zip(*wishes, strict=True)
    ]
    return fill(halfway, width=width, budget=budget, multiple=multiple)


def fill(wishes: Sequence[Wish], *, width: int, budget: int, multiple: int) -> Layers:
    """Shapes near the wishes, as close below the budget as the multiples allow."""
    least = len(wishes) * parameters(width, 1, multiple, multiple)
    require(
        budget >= least,
        f"the budget of {budget:,} attention parameters is below the smallest possible one, "
        f"{least:,}: one head of dimension {multiple} in each of {len(wishes)} layers",
    )
    units = budget // (2 * width)  # of heads × (qk_dim + v_dim)
    layers = [
        _Layer(share, wish.heads, width, multiple)
        for share, wish in zip(_shares(wishes, units, multiple), wishes, strict=True)
    ]
    items = [layer.item() for layer in layers]
    options = choose(items, units).options
    dims = [layer.pairs[option] for layer, option in zip(layers, options, strict=True)]
    spent = sum(layer.heads * sum(pair) for layer, pair in zip(layers, dims, strict=True))
    left = units - spent
    for index in sorted(range(len(layers)), key=lambda each: layers[each].heads):
        dims[index], left = layers[index].widened(dims[index], left)
    return tuple(
        AttentionShape(heads=layer.heads, qk_dim=qk_dim, v_dim=v_dim)
        for layer, (qk_dim, v_dim) in zip(layers, dims, strict=True)
    )


class _Layer:
    """One layer with its heads fixed, and the pairs of dimensions around what it wishes."""

    def __init__(self, units: float, heads: float, width: int, multiple: int) -> None:
        self.multiple = multiple
        self.widest = max(1, width // multiple) * multiple  # wider than the model is of no use
        fewest = -(-units // (2 * self.widest))
        most = units // (2 * multiple)
        self.heads = int(max(1, min(max(fewest, round(heads)), most)))
        self.wished = units / (2 * self.heads)
        base = int(self.wished // multiple) * multiple
        sizes = sorted(
            {min(self.widest, max(multiple, base + step * multiple)) for step in _AROUND}
        )
        self.pairs = [(qk_dim, v_dim) for qk_dim in sizes for v_dim in sizes]

    def item(self) -> Item:
        """Units spent are worth most; among equals, those near the wish."""
        costs = np.array([self.heads * sum(pair) for pair in self.pairs], dtype=float)
        away = np.array([sum((dim - self.wished) ** 2 for dim in pair) for pair in self.pairs])
        return Item(costs, -costs + 1e-3 * away / (1 + away.max()))

    def widened(self, pair: tuple[int, int], left: int) -> tuple[tuple[int, int], int]:
        """Spend what is left on this layer's values, then on its queries and keys."""
        dims = list(pair)
        for side in (1, 0):
            room = (self.widest - dims[side]) // self.multiple
            steps = min(left // (self.heads * self.multiple), room)
            dims[side] += steps * self.multiple
            left -= steps * self.multiple * self.heads
        return (dims[0], dims[1]), left


def _wish(layer: AttentionShape) -> Wish:
    return Wish(share=layer.heads * (layer.qk_dim + layer.v_dim), heads=layer.heads)


def _in_shares(layers: Sequence[AttentionShape]) -> list[Wish]:
    """The layers as wishes whose shares add up to one."""
    wishes = [_wish(layer) for layer in layers]
    total = sum(wish.share for wish in wishes)
    return [wish._replace(share=wish.share / total) for wish in wishes]


def _shares(wishes: Sequence[Wish], units: int, multiple: int) -> list[float]:
    """Units in proportion to the shares, but at least one head of the smallest size each."""
    least = 2.0 * multiple
    shares = np.array([wish.share for wish in wishes])
    low = np.zeros(len(shares), bool)
    while True:
        rest = units - least * low.sum()
        wished = np.where(low, least, rest * shares / max(shares[~low].sum(), 1e-300))
        below = ~low & (wished < least)
        if not below.any():
            return [float(each) for each in wished]
        low |= below
