"""Piecewise-linear interpolation as a ReLU network, with its error bound.

On a box cut into cells of sides s_1..s_d, the Freudenthal (Kuhn) triangulation splits each cell
into d! simplices, one for each order of the coordinates. All corners of a cell lie on the sphere
of radius R = ½√(Σ s_j²) about its centre c, so for x = Σ λ_k v_k in a simplex with corners v_k

    Σ λ_k |v_k − x|² = R² − |x − c|² ≤ R².

Hence the interpolant Σ λ_k f(v_k) is within L·R of an L-Lipschitz f (Jensen), and within M·R²/2
of an f whose second derivatives are bounded by M (Taylor at x; the linear terms cancel).

In units of cells the hat function of a node is the box spline with directions e_1..e_d and
(1,…,1): the differences, in those d + 1 directions, of the truncated power relu(min_j z_j). So

    interpolant(z) = Σ_m b_m relu(min_j (z_j + 1 − m_j)),   b = ∇_1 … ∇_d ∇_(1,…,1) f(nodes),

which takes one unit a node instead of a network of its own for each hat function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, prod, sqrt

import numpy as np
from jaxtyping import Float

from headwise.build.maps.relu import UNIT, Network, layer

MOST_AXES = 6
"""Beyond it even two cells an axis are thousands of units a layer."""


@dataclass(frozen=True)
class InterpolationGrid:
    """A box cut into `cells[j]` equal parts along axis j."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    cells: tuple[int, ...]

    @classmethod
    def of_radius(
        cls, low: Sequence[float], high: Sequence[float], radius: float
    ) -> "InterpolationGrid":
        """The coarsest grid of about cubic cells with circumradius at most `radius`."""
        side = 2 * radius / sqrt(len(low))
        sides = [float(b) - float(a) for a, b in zip(low, high, strict=True)]
        cells = tuple(max(1, 1 if side == inf else ceil(length / side)) for length in sides)
        return cls(tuple(map(float, low)), tuple(map(float, high)), cells)

    @property
    def radius(self) -> float:
        """Circumradius of a cell."""
        sides = ((b - a) / n for a, b, n in zip(self.low, self.high, self.cells, strict=True))
        return sqrt(sum(side**2 for side in sides)) / 2

    @property
    def node_count(self) -> int:
        """Corners of cells, those on the box's faces included."""
        return prod(n + 1 for n in self.cells)

    def nodes(self) -> Float[np.ndarray, "nodes dim"]:
        """The nodes, the last axis running fastest."""
        axes = [
            np.linspace(a, b, n + 1)
            for a, b, n in zip(self.low, self.high, self.cells, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))

    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """(scale, shift): z = scale·x + shift counts cells from the lower corner."""
        low, cells = np.array(self.low), np.array(self.cells, np.float64)
        sides = np.array(self.high) - low
        scale = cells / np.where(sides > 0, sides, 1.0)
        return scale, -low * scale

    def hidden_widths(self) -> tuple[int, ...]:
        """The widths of `interpolant`'s hidden layers, known before anything is allocated."""
        if len(self.cells) == 1:
            return (self.cells[0],)
        sizes = np.cumprod([len(each) for each in self.offsets()]).tolist()
        left = len(self.cells) - 2  # axes that are not taken into account yet, a unit each
        stages = [1 + sum(sizes[: k + 1]) + left - k for k in range(len(sizes))]
        return (*stages, self.node_count)

    def offsets(self) -> list[np.ndarray]:
        """For each axis k but the first, all that m_1 − m_k can be for a node m."""
        return [np.arange(-count, self.cells[0] + 1) for count in self.cells[1:]]


def radius_for(error: float, lipschitz: float | None, curvature: float | None) -> float:
    """The largest circumradius for which one of the two bounds promises `error`."""
    by_slope = 0.0 if lipschitz is None else (inf if lipschitz == 0 else error / lipschitz)
    by_curve = (
        0.0 if curvature is None else (inf if curvature == 0 else sqrt(2 * error / curvature))
    )
    return max(by_slope, by_curve)


def interpolation_error(
    grid: InterpolationGrid, lipschitz: float | None, curvature: float | None
) -> float:
    """The better of L·R and M·R²/2."""
    by_slope = inf if lipschitz is None else lipschitz * grid.radius
    by_curve = inf if curvature is None else curvature * grid.radius**2 / 2
    return min(by_slope, by_curve)


def ridge(
    scale: Float[np.ndarray, " dim"], shift: float, values: Float[np.ndarray, "nodes out"]
) -> Network:
    """x ↦ the piecewise-linear function of z = ⟨scale, x⟩ + shift with these values at 0, 1, 2, …

    values[0] + Σ_j b_j relu(z − j), b_0 the first slope and b_j the change of slope at j.
    """
    cells = len(values) - 1
    first = layer(np.tile(scale, (cells, 1)), shift - np.arange(cells))
    slopes, error = _difference(values, np.zeros_like(values), (1,))
    slopes, error = slopes[1:], error[1:]  # the first row is the value itself, kept as the bias
    bends, error = _difference(slopes, error, (1,))
    largest = cells - np.arange(cells, dtype=np.float64)
    slack = largest @ error + _moved(bends, values, cells + abs(shift))
    return [first, layer(bends.T, values[0], slack)]


def interpolant(grid: InterpolationGrid, values: Float[np.ndarray, "nodes out"]) -> Network:
    """The interpolant of `values` at the grid's nodes, for points of the box."""
    scale, shift = grid.units()
    if len(grid.cells) == 1:
        return ridge(scale, float(shift[0]), values)
    middle = (values.max(0) + values.min(0)) / 2  # smaller coefficients, smaller rounding
    sizes, axes = [n + 1 for n in grid.cells], len(grid.cells)
    table = (values - middle).reshape(*sizes, -1)
    error = UNIT * np.abs(table)
    for direction in (*np.eye(axes, dtype=int), np.ones(axes, dtype=int)):
        table, error = _difference(table, error, tuple(int(step) for step in direction))
    coefficients, error = (each.reshape(grid.node_count, -1) for each in (table, error))
    index = np.indices(sizes).reshape(axes, -1)
    largest = (np.array(sizes)[:, None] - index).min(0).astype(np.float64)  # of a unit, in the box
    reach = max(grid.cells) + float(np.abs(shift).max())
    slack = largest @ error + _moved(coefficients, values, reach)
    return [*_truncated_powers(grid, scale, shift), layer(coefficients.T, middle, slack)]


def _truncated_powers(grid: InterpolationGrid, scale: np.ndarray, shift: np.ndarray) -> Network:
    """relu(min_j (z_j + 1 − m_j)) at every node m: a layer an axis takes off what it is below.

    p_1 = z_1 + 1, u_k = relu(p_(k−1) − (z_k + 1) − c_k) and p_k = p_(k−1) − u_k with
    c_k = m_1 − m_k give p_k − m_1 = min_(j ≤ k) (z_j + 1 − m_j). A u_k depends on (c_2, …, c_k)
    only, so nodes share it. The units of a layer are u_2, z_1 + 1, u_3, …, u_k and what is still
    to be compared, z_(k+1) + 1, …: none is negative in the box, so each passes a ReLU unchanged.
    """
    axes, offsets, rows = len(grid.cells), grid.offsets(), np.diag(scale)
    sizes = tuple(len(each) for each in offsets)
    network = [
        layer(
            np.concatenate([np.tile(rows[0] - rows[1], (sizes[0], 1)), rows[:1], rows[2:]]),
            np.concatenate([shift[0] - shift[1] - offsets[0], shift[:1] + 1, shift[2:] + 1]),
        )
    ]
    for stage in range(1, axes - 1):  # compares with z_(stage + 2)
        chosen = np.indices(sizes[: stage + 1]).reshape(stage + 1, -1)
        below = _least_so_far(chosen[:-1], sizes)
        known, left = below.shape[1], axes - 2 - stage
        below = np.pad(below, ((0, 0), (0, 1 + left)))
        below[:, known] = -1
        keep = np.eye(known + 1 + left)
        weight = np.concatenate([keep[:known], below, keep[known + 1 :]])
        bias = np.zeros(len(weight))
        bias[known : known + len(below)] = -offsets[stage][chosen[-1]]
        network.append(layer(weight, bias))
    first, *others = (index.ravel() for index in np.indices([n + 1 for n in grid.cells]))
    chosen = np.stack([first - m - each[0] for m, each in zip(others, offsets, strict=True)])
    return [*network, layer(_least_so_far(chosen, sizes), -first.astype(float))]


def _least_so_far(chosen: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Rows z_1 + 1 − u_2 − … − u_k over those units, for offsets given by their numbers."""
    ends = 1 + np.cumsum(np.cumprod(sizes[: len(chosen)]))
    rows = np.zeros((chosen.shape[1], ends[-1]))
    rows[:, sizes[0]] = 1  # z_1 + 1 stands behind u_2
    for k in range(len(chosen)):
        start = 0 if k == 0 else ends[k - 1]
        place = np.ravel_multi_index(tuple(chosen[: k + 1]), sizes[: k + 1])
        rows[np.arange(len(rows)), start + place] = -1
    return rows


def _difference(
    table: np.ndarray, error: np.ndarray, direction: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """table[m] − table[m − direction] (0 outside), with a bound on its rounding error."""
    inside = tuple(slice(step, None) for step in direction)
    before = tuple(slice(None, -step if step else None) for step in direction)
    new, new_error = table.copy(), error.copy()
    new[inside] -= table[before]
    new_error[inside] += error[before]
    return new, new_error + UNIT * np.abs(new)


def _moved(coefficients: np.ndarray, values: np.ndarray, reach: float) -> np.ndarray:
    """What a few roundings of the node's places, and of the values there, can change."""
    return UNIT * (8 * (reach + 1) * np.abs(coefficients).sum(0) + 16 * np.abs(values).max(0))
