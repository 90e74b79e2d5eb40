"""Interpolants: the box-spline network is the Freudenthal interpolant, within its error bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.build.maps.interpolate import InterpolationGrid, interpolant, interpolation_error
from headwise.build.maps.relu import evaluate


def by_sorting(grid: InterpolationGrid, table: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The textbook definition: walk from a cell's lower corner, largest fraction first."""
    scale, shift = grid.units()
    results = []
    for point in points * scale + shift:
        corner = np.clip(np.floor(point).astype(int), 0, np.array(grid.cells) - 1)
        fractions = point - corner
        order = np.argsort(-fractions)
        weights = -np.diff([1.0, *fractions[order], 0.0])
        value = weights[0] * table[tuple(corner)]
        for axis, weight in zip(order, weights[1:], strict=True):
            corner[axis] += 1
            value = value + weight * table[tuple(corner)]
        results.append(value)
    return np.array(results)


@settings(deadline=None, max_examples=60)
@given(
    cells=st.lists(st.integers(1, 7), min_size=1, max_size=3)
    | st.lists(st.integers(1, 3), min_size=4, max_size=4)
    | st.lists(st.integers(1, 2), min_size=5, max_size=5),
    seed=st.integers(0, 10**6),
)
def test_the_network_is_the_interpolant(cells: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3, 3, len(cells))
    grid = InterpolationGrid(tuple(low), tuple(low + rng.uniform(0.1, 5, len(cells))), tuple(cells))
    values = rng.normal(size=(grid.node_count, 2))
    network = interpolant(grid, values)
    assert tuple(len(each.bias) for each in network[:-1]) == grid.hidden_widths()
    points = rng.uniform(grid.low, grid.high, (40, len(cells)))
    table = values.reshape(*(n + 1 for n in cells), 2)
    got, wanted = evaluate(network, points), by_sorting(grid, table, points)
    assert np.abs(got - wanted).max() <= network[-1].slack.max() + 1e-12
    np.testing.assert_allclose(evaluate(network, grid.nodes()), values, atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_the_curvature_bound_is_attained_by_a_paraboloid(dim: int) -> None:
    grid = InterpolationGrid((0.0,) * dim, (1.0,) * dim, (4,) * dim)
    network = interpolant(grid, (grid.nodes() ** 2).sum(1, keepdims=True))
    points = np.concatenate(
        [np.random.default_rng(0).random((2000, dim)), np.full((1, dim), 1 / 8)]
    )
    errors = np.abs(evaluate(network, points)[:, 0] - (points**2).sum(1))
    bound = interpolation_error(grid, lipschitz=None, curvature=2.0)
    assert errors.max() == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_the_lipschitz_bound_holds_for_cones_and_is_attained_on_a_line(dim: int) -> None:
    grid = InterpolationGrid((0.0,) * dim, (1.0,) * dim, (4,) * dim)
    centre = np.full(dim, 1 / 8)  # the middle of a cell
    distance = lambda points: np.linalg.norm(points - centre, axis=1, keepdims=True)  # noqa: E731
    network = interpolant(grid, distance(grid.nodes()))
    points = np.concatenate([np.random.default_rng(0).random((2000, dim)), centre[None]])
    errors = np.abs(evaluate(network, points) - distance(points))
    bound = interpolation_error(grid, lipschitz=1.0, curvature=None)
    assert errors.max() <= bound * (1 + 1e-12)
    assert errors[-1, 0] == pytest.approx(bound, rel=1e-9)
