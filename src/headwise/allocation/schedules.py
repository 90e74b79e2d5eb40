"""Named ways to share a budget of attention parameters out over layers.

A schedule says, layer by layer, which share of the budget it gets and how many heads; then `fill`
makes shapes of it that can be built. All schedules of one budget spend it equally but for
rounding: head dimensions are multiples of `multiple`, so that what is left over is less than one
more multiple in the queries and keys, or in the values, of the layer with the fewest heads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headwise.allocation.fill import Layers, Wish, fill
from headwise.core.errors import require
from headwise.theory.checks import whole

_USUAL_DIMS = (64, 32, 16, 8)
_USUAL_HEADS = 4


@dataclass(frozen=True)
class Schedule:
    """`pattern(layers, heads, rng)`: of every layer, its share and its heads, 1 being uniform's."""

    title: str
    source: str
    pattern: Callable[[int, float, np.random.Generator], list[tuple[float, float]]]


def schedule(
    name: str,
    *,
    layers: int,
    width: int,
    budget: int,
    heads: int | None = None,
    first_heads: int = 1,
    multiple: int = 4,
    seed: int = 0,
) -> Layers:
    """The named schedule's layers at this budget of attention parameters, never above it.

    `heads` is the uniform schedule's number of heads a layer, to which the others are relative;
    see `uniform_heads` for the default. The first layer gets at least `first_heads`, and the
    others give of theirs where that takes more than its share. `seed` matters to "random" alone.
    """
    require(name in SCHEDULES, f"no schedule is called {name!r}; there are {', '.join(SCHEDULES)}")
    usual = uniform_heads(layers=layers, width=width, budget=budget, multiple=multiple)
    heads = usual if heads is None else whole("heads", heads)
    rng = np.random.default_rng([seed, 0x5CED])
    wishes = [
        Wish(share=share, heads=heads * count)
        for share, count in SCHEDULES[name].pattern(layers, heads, rng)
    ]
    if first_heads > wishes[0].heads:
        least = (first_heads * multiple + 1) / _share(layers, width, budget)
        wishes = _more_at_first(wishes, first_heads, least)
    return fill(wishes, width=width, budget=budget, multiple=multiple)


def uniform_heads(*, layers: int, width: int, budget: int, multiple: int = 4) -> int:
    """Heads of a uniform layer at this budget: of dimension 64, or less where 4 would not fit.

    Never less than 8 where the budget allows one such head: `multiple` says which dimensions
    hardware likes, not how narrow a head may be.
    """
    layers, width = whole("layers", layers, most=10_000), whole("width", width)
    multiple = whole("multiple", multiple, most=width)
    share = _share(layers, width, whole("budget", budget))
    dims = [max(1, round(dim / multiple)) * multiple for dim in _USUAL_DIMS]
    dim = next((dim for dim in dims if share >= _USUAL_HEADS * dim), dims[-1])
    return max(1, round(share / dim))


def _share(layers: int, width: int, budget: int) -> float:
    """Heads × dimension of a uniform layer."""
    return budget / (4 * width * layers)


def _more_at_first(wishes: list[Wish], heads: int, least: float) -> list[Wish]:
    """The first layer with so many heads, which take `least` of the uniform share or more."""
    (first, *rest), others = wishes, sum(wish.share for wish in wishes[1:])
    if least > first.share and rest:
        left = max(others + first.share - least, 1e-9) / others
        rest = [wish._replace(share=wish.share * left) for wish in rest]
    return [Wish(share=max(first.share, least), heads=heads), *rest]


def _uniform(layers: int, heads: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    return [(1.0, 1.0)] * layers


def _early_heavy(layers: int, heads: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """As many heads everywhere; their dimension falls from 3/2 to 1/2 of the uniform one."""
    return [(1.5 - depth, 1.0) for depth in _depths(layers)]


def _wide_then_many(
    layers: int, heads: float, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """As many parameters everywhere; heads twice as wide at first, half as wide at last."""
    return [(1.0, 4.0**depth / 2) for depth in _depths(layers)]


def _rising(layers: int, heads: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Heads of one dimension; half as many at first as at last."""
    return [((2 + 2 * depth) / 3, (2 + 2 * depth) / 3) for depth in _depths(layers)]


def _many_then_one(
    layers: int, heads: float, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """As many parameters everywhere; twice the heads in the first layer, one in the others."""
    return [(1.0, 2.0), *[(1.0, 1 / heads)] * (layers - 1)]


def _random(layers: int, heads: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """At random: shares from 1/2 to 3/2, and heads half, as or twice as wide as uniform's."""
    shares = rng.uniform(0.5, 1.5, layers)
    widths = 2.0 ** rng.integers(-1, 2, layers)
    return [(float(part), float(part / wide)) for part, wide in zip(shares, widths, strict=True)]


def _depths(layers: int) -> list[float]:
    """0 for the first layer, 1 for the last; 1/2 for an only one."""
    return [0.5] if layers == 1 else [index / (layers - 1) for index in range(layers)]


SCHEDULES: Mapping[str, Schedule] = {
    "uniform": Schedule("all layers alike", "common practice", _uniform),
    "early-heavy": Schedule("early layers more, later heads narrower", "2510.03784", _early_heavy),
    "wide-then-many": Schedule("few wide heads, then many narrow", "2606.27449", _wide_then_many),
    "rising": Schedule("more heads with depth", "OpenELM, 2404.14619", _rising),
    "many-then-one": Schedule("many heads, then one a layer", "2408.04532", _many_then_one),
    "random": Schedule("at random", "a control", _random),
}
