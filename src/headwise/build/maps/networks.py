"""What is known of a task's maps on a box, and ReLU networks for them within a given error."""

from collections.abc import Callable
from math import ceil, factorial, inf, sqrt

import numpy as np
from jaxtyping import Float

from headwise.build.maps.coded import known_code
from headwise.build.maps.interpolate import InterpolationGrid, ridge
from headwise.build.maps.known import KnownMap, MapPlan
from headwise.build.maps.relu import Network, affine, layer
from headwise.build.maps.sampling import Box
from headwise.core.errors import require
from headwise.tasks.maps import (
    Affine,
    Bowl,
    Features,
    Function,
    OuterMap,
    Product,
    WeightedSum,
)

MOST_FACTORS = 24


def known_features(features: Features, box: Box) -> KnownMap:
    """The features of a token in the box."""
    if isinstance(features, Affine):
        weights = np.array(features.weights)
        offsets = np.array(features.offsets or (0.0,) * features.count)
        return _affine(weights, offsets, box)
    if isinstance(features, Bowl):
        return _bowls(features, box)
    return known_code(features, box, "features")


def known_outer(outer: OuterMap, box: Box) -> KnownMap:
    """The outer map on the box of the features' values."""
    count = len(box.low)
    if isinstance(outer, Function):
        require(
            outer.lipschitz is not None,
            "the outer map is given as code without a Lipschitz constant: declare lipschitz=…, "
            "which says how far an error of a feature can move the result",
        )
        return known_code(outer, box, "outer map")
    if isinstance(outer, Product) and count > 1:
        return _product(box)
    weights = np.array(outer.weights) if isinstance(outer, WeightedSum) else np.ones(count)
    return _affine(weights[None], np.zeros(1), box)


def _affine(weights: np.ndarray, offsets: np.ndarray, box: Box) -> KnownMap:
    ends = np.stack([weights * box.low, weights * box.high])
    count = len(offsets)

    def one_sided(errors: np.ndarray, directions: np.ndarray) -> float:
        moves = weights[0] * directions * errors
        return float(max(moves[moves > 0].sum(), -moves[moves < 0].sum()))

    plan = MapPlan(
        widths=(2 * count,),
        error=np.zeros(count),
        why="affine: exact",
        make=lambda: affine(weights, offsets),
    )
    return KnownMap(
        box=box,
        low=ends.min(0).sum(1) + offsets,
        high=ends.max(0).sum(1) + offsets,
        terms=np.abs(weights) @ box.reach + np.abs(offsets),
        exact=True,
        plan=lambda error: plan,
        spread=lambda errors: float(np.abs(weights[0]) @ errors),
        one_sided=one_sided,
    )


def _bowls(bowls: Bowl, box: Box) -> KnownMap:
    """κ_i Σ_j (x_j − c_ij)²: one univariate interpolant a coordinate, shared by all features.

    Its second derivative is 2κ_i, so cells of side s cost κ_i s²/4 in each of d coordinates. The
    interpolant of a convex function lies above it and has its maximum at an end of the interval:
    both ends are nodes, so the range of the values does not grow.
    """
    centres = np.array(bowls.centres)
    kappas = np.array(bowls.curvatures or (1.0,) * bowls.count)
    dim = bowls.token_dim
    nearest = np.clip(centres, box.low, box.high)
    farthest = np.maximum(np.abs(box.low - centres), np.abs(box.high - centres))

    def plan(error: float) -> MapPlan:
        side = sqrt(4 * error / (dim * float(kappas.max())))
        cells = [max(1, ceil(float(length) / side)) for length in box.high - box.low]
        sides = (box.high - box.low) / np.array(cells, np.float64)

        def make() -> Network:
            return _sum_of_ridges(
                [
                    (np.eye(dim)[j], InterpolationGrid((box.low[j],), (box.high[j],), (cells[j],)))
                    for j in range(dim)
                ],
                lambda j, points: kappas * (points[:, None] - centres[:, j]) ** 2,
            )

        return MapPlan(
            widths=(sum(cells),),
            error=kappas * (sides**2).sum() / 4,
            why=f"κ·Σ_j s_j²/4 with {'×'.join(map(str, cells))} cells, one axis at a time",
            make=make,
        )

    return KnownMap(
        box=box,
        low=kappas * ((nearest - centres) ** 2).sum(1),
        high=kappas * (farthest**2).sum(1),
        terms=kappas * ((box.reach + np.abs(centres)) ** 2).sum(1),
        exact=False,
        plan=plan,
        spread=_no_spread,
        one_sided=lambda errors, directions: inf,
    )


def _product(box: Box) -> KnownMap:
    """Π z_i as 2^(D−1) functions of one variable each (polarisation):

    Π z_i = Σ_{ε ∈ {1}×{±1}^(D−1)} (Π ε_i) (Σ ε_i z_i)^D / (2^(D−1) D!)
    """
    count = len(box.low)
    require(
        count <= MOST_FACTORS,
        f"a product of {count} features takes 2^{count - 1} functions of one variable; at most "
        f"{MOST_FACTORS} features can be multiplied",
    )
    bits = np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 2, -1, -1) & 1
    signs = np.concatenate([np.ones((len(bits), 1)), 1.0 - 2.0 * bits], axis=1)
    factors = signs.prod(1) / (len(signs) * factorial(count))
    low = np.minimum(signs * box.low, signs * box.high).sum(1)
    high = np.maximum(signs * box.low, signs * box.high).sum(1)
    reach = np.maximum(np.abs(low), np.abs(high))
    bends = np.abs(factors) * count * (count - 1) * reach ** (count - 2)
    slopes = np.array([np.delete(box.reach, i).prod() for i in range(count)])
    least, most = _product_range(box)

    def plan(error: float) -> MapPlan:
        sides = np.sqrt(8 * error / (len(signs) * np.maximum(bends, 1e-300)))
        cells = [int(count) for count in np.maximum(1.0, np.ceil((high - low) / sides))]

        def make() -> Network:
            return _sum_of_ridges(
                [
                    (signs[k], InterpolationGrid((low[k],), (high[k],), (cells[k],)))
                    for k in range(len(signs))
                ],
                lambda k, points: factors[k] * points[:, None] ** count,
            )

        return MapPlan(
            widths=(sum(cells),),
            error=np.array(
                [float((bends * ((high - low) / np.array(cells, np.float64)) ** 2).sum() / 8)]
            ),
            why=f"Σ_k M_k s_k²/8 over {len(signs)} univariate powers, {sum(cells)} cells",
            make=make,
        )

    return KnownMap(
        box=box,
        low=np.array([least]),
        high=np.array([most]),
        terms=box.reach.prod(keepdims=True),
        exact=False,
        plan=plan,
        spread=lambda errors: float(slopes @ errors),
        one_sided=lambda errors, directions: float(slopes @ errors),
    )


def _product_range(box: Box) -> tuple[float, float]:
    """The least and largest product: at corners, and each factor stands in it once."""
    least = most = 1.0
    for low, high in zip(box.low, box.high, strict=True):
        ends = (least * low, least * high, most * low, most * high)
        least, most = float(min(ends)), float(max(ends))
    return least, most


def _sum_of_ridges(
    ridges: list[tuple[np.ndarray, InterpolationGrid]],
    values: Callable[[int, np.ndarray], Float[np.ndarray, "nodes out"]],
) -> Network:
    """Σ_k φ_k(⟨w_k, x⟩), each φ_k interpolated on its own grid, as one hidden layer."""
    parts = []
    for index, (direction, grid) in enumerate(ridges):
        scale, shift = grid.units()
        table = values(index, grid.nodes()[:, 0])
        parts.append(ridge(direction * scale[0], float(shift[0]), table))
    first, last = [part[0] for part in parts], [part[1] for part in parts]
    return [
        layer(np.concatenate([p.weight for p in first]), np.concatenate([p.bias for p in first])),
        layer(
            np.concatenate([p.weight for p in last], axis=1),
            np.sum([p.bias for p in last], axis=0),
            np.sum([p.slack for p in last], axis=0) + _bias_rounding([p.bias for p in last]),
        ),
    ]


def _bias_rounding(biases: list[np.ndarray]) -> np.ndarray:
    return len(biases) * 2.0**-53 * np.abs(biases).sum(0)


def _no_spread(errors: np.ndarray) -> float:
    return inf  # only outer maps, which are scalar, are asked
