"""Named ways to share a budget of attention parameters out over layers.

A schedule says, layer by layer, which share of the budget it gets and how wide its heads are; then
`fill` makes shapes of it that can be built. All schedules of one budget spend it equally but for
rounding: head dimensions are multiples of `multiple`, so that what is left over is less than one
more multiple in the queries and keys, or in the values, of the layer with the fewest heads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headwise.allocation.fill import LayerShare, fill
from headwise.core.errors import require
from headwise.nets import AttentionShape
from headwise.theory.allocation import parameters
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
    head_dim: int | None = None,
    multiple: int = 4,
    seed: int = 0,
) -> tuple[AttentionShape, ...]:
    """The named schedule's layers at this budget of attention parameters, never above it.

    `head_dim` is the uniform schedule's; by default 64, or as much as leaves 4 heads a layer.
    `seed` matters to "random" alone.
    """
    require(name in SCHEDULES, f"no schedule is called {name!r}; there are {', '.join(SCHEDULES)}")
    grid = UniformLayers.of(layers, width, budget, head_dim, multiple)
    return fill(targets(name, grid, seed), width=width, budget=budget, multiple=multiple)


@dataclass(frozen=True)
class UniformLayers:
    """What the uniform schedule is at a budget, to which the others are relative."""

    layers: int
    heads: int
    share: float  # heads × dimension of a layer

    @staticmethod
    def of(
        layers: int, width: int, budget: int, head_dim: int | None = None, multiple: int = 4
    ) -> "UniformLayers":
        layers, width = whole("layers", layers, most=10_000), whole("width", width)
        multiple = whole("multiple", multiple, most=width)
        share = whole("budget", budget) / (4 * width * layers)
        dim = usual_head_dim(share, multiple) if head_dim is None else whole("head_dim", head_dim)
        return UniformLayers(layers, max(1, round(share / dim)), share)


def targets(name: str, grid: UniformLayers, seed: int = 0) -> tuple[LayerShare, ...]:
    """What the named schedule wishes for every layer, whatever the width."""
    require(name in SCHEDULES, f"no schedule is called {name!r}; there are {', '.join(SCHEDULES)}")
    rng = np.random.default_rng([seed, 0x5CED])
    pattern = SCHEDULES[name].pattern(grid.layers, grid.heads, rng)
    return tuple(LayerShare(share=part, heads=grid.heads * count) for part, count in pattern)


def usual_head_dim(share: float, multiple: int) -> int:
    """The largest usual head dimension of which `share` numbers make four heads."""
    fitting = [dim for dim in _USUAL_DIMS if share >= _USUAL_HEADS * dim and dim % multiple == 0]
    return fitting[0] if fitting else multiple


def attention_parameters(width: int, layers: tuple[AttentionShape, ...]) -> int:
    """Weights of all projections, without biases."""
    return sum(parameters(width, each.heads, each.qk_dim, each.v_dim) for each in layers)


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
    """Shares from 1/2 to 3/2, and heads half, as or twice as wide as the uniform ones, by lot."""
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
    "random": Schedule("by lot", "a control", _random),
}
