"""Functions given as code, known by what is declared of them."""

import numpy as np

from headwise.build.maps.declared import check, declarations, values_of
from headwise.build.maps.interpolate import (
    MOST_AXES,
    InterpolationGrid,
    interpolant,
    interpolation_error,
    radius_for,
)
from headwise.build.maps.known import KnownMap, MapPlan
from headwise.build.maps.sampling import Box
from headwise.core.errors import InputError, require
from headwise.tasks.maps import Function

_COARSE_NODES = 4096


def known_code(function: Function, box: Box, what: str) -> KnownMap:
    """A function known by its declared constants: interpolated on the Freudenthal triangulation."""
    dim = len(box.low)
    require(
        dim <= MOST_AXES,
        f"the {what} {'are' if what == 'features' else 'is'} a function of {dim} numbers given as "
        "code; a certified network can be "
        f"built in up to {MOST_AXES} (affine, bowl and product maps in any number)",
    )
    tried = check(function, box, what)
    lipschitz, curvature = (
        None if constant is None else float(constant)
        for constant in (function.lipschitz, function.curvature)
    )
    low, high = _range(function, box, what, lipschitz, curvature)

    def plan(error: float) -> MapPlan:
        grid = InterpolationGrid.of_radius(
            box.low.tolist(), box.high.tolist(), radius_for(error, lipschitz, curvature)
        )
        reached = interpolation_error(grid, lipschitz, curvature)
        bound = "L·R" if lipschitz is not None and reached == lipschitz * grid.radius else "M·R²/2"
        return MapPlan(
            widths=grid.hidden_widths(),
            error=np.full(len(low), reached),
            why=f"{bound} with {'×'.join(map(str, grid.cells))} cells of circumradius "
            f"R = {grid.radius:.3g}",
            make=lambda: interpolant(grid, _clipped(function, grid, low, high, what)),
        )

    def spread(errors: np.ndarray) -> float:
        return (lipschitz or 0.0) * float(np.linalg.norm(errors))

    return KnownMap(
        box=box,
        low=low,
        high=high,
        terms=np.maximum(np.abs(low), np.abs(high)),
        exact=False,
        plan=plan,
        spread=spread,
        one_sided=lambda errors, directions: spread(errors),
        declared=declarations(function, what, tried),
    )


def _range(
    function: Function, box: Box, what: str, lipschitz: float | None, curvature: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """The declared range, or one that the declared constants imply from a coarse grid."""
    count = function.count if what == "features" else 1
    cells = max(1, int(_COARSE_NODES ** (1 / len(box.low))) - 1)
    grid = InterpolationGrid(
        tuple(box.low.tolist()), tuple(box.high.tolist()), (cells,) * len(box.low)
    )
    values = values_of(function, grid.nodes(), what)
    beyond = interpolation_error(grid, lipschitz, curvature)
    low, high = values.min(0) - beyond, values.max(0) + beyond
    if function.low is not None:
        low = np.full(count, float(function.low))
    if function.high is not None:
        high = np.full(count, float(function.high))
    return low, high


def _clipped(
    function: Function, grid: InterpolationGrid, low: np.ndarray, high: np.ndarray, what: str
) -> np.ndarray:
    """Values at the nodes, which must lie in the range but for rounding."""
    values = values_of(function, grid.nodes(), what)
    slack = 1e-6 * (1 + high - low)
    if bool((values < low - slack).any() or (values > high + slack).any()):
        raise InputError(
            f"the declared range of the {what} is [{function.low}, {function.high}], but on the "
            f"grid they reach from {values.min():.6g} to {values.max():.6g}"
        )
    return np.clip(values, low, high)
