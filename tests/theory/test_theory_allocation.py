"""Allocation: the solver against brute force, the fit against data made from it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.theory.allocation import (
    Item,
    LayerCurve,
    allocate,
    cache_bytes,
    choose,
    cost_function,
    fit_tradeoff,
    flops,
    lower_bound,
    parameters,
)


def random_items(rng: np.random.Generator, whole_costs: bool) -> list[Item]:
    items = []
    for _ in range(int(rng.integers(1, 6))):
        count = int(rng.integers(1, 7))
        costs = rng.integers(0, 30, count).astype(float) if whole_costs else rng.random(count) * 30
        items.append(Item(costs, rng.normal(size=count)))
    return items


def brute_force(items: list[Item], budget: float) -> float:
    best = np.inf
    for options in itertools.product(*(range(len(item.costs)) for item in items)):
        cost = sum(item.costs[o] for item, o in zip(items, options, strict=True))
        loss = sum(item.losses[o] for item, o in zip(items, options, strict=True))
        if cost <= budget:
            best = min(best, loss)
    return float(best)


@pytest.mark.parametrize("seed", range(200))
def test_the_solver_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng([seed, 20])
    items = random_items(rng, whole_costs=seed % 2 == 0)
    low = sum(item.costs.min() for item in items)
    high = sum(item.costs.max() for item in items)
    budget = float(low + rng.random() * (high - low))
    best = brute_force(items, budget)
    found = choose(items, budget)
    assert found.cost <= budget
    assert found.exact
    assert found.loss == pytest.approx(best, abs=1e-9)
    rough = choose(items, budget, exact=False)
    assert rough.cost <= budget
    assert best - 1e-9 <= rough.loss
    assert rough.loss - rough.gap <= best + 1e-9


def test_hull_options_are_all_reachable() -> None:
    item = Item(np.array([0.0, 1.0, 2.0, 3.0]), np.array([4.0, 2.0, 1.0, 0.5]))
    picks = [choose([item], budget).options[0] for budget in (0, 1, 2, 3)]
    assert picks == [0, 1, 2, 3]


@given(seed=st.integers(0, 2**32), price=st.floats(0, 10))
def test_every_price_gives_a_lower_bound(seed: int, price: float) -> None:
    rng = np.random.default_rng(seed)
    items = random_items(rng, whole_costs=True)
    budget = float(sum(item.costs.max() for item in items) * rng.random())
    assert lower_bound(items, budget, price) <= brute_force(items, budget) + 1e-9


def test_a_problem_too_large_to_search_has_a_gap_that_is_said() -> None:
    """Loss = −cost with real costs: a subset-sum problem, on which no bound prunes anything."""
    rng = np.random.default_rng(0)
    costs = [rng.random(64) for _ in range(40)]
    found = choose([Item(each, -each) for each in costs], 20.1234567)
    assert not found.exact
    assert 0 < found.gap < 0.01
    assert found.cost <= 20.1234567
    assert found.loss - found.gap == pytest.approx(-20.1234567)


def test_a_budget_below_the_smallest_is_refused_with_the_smallest() -> None:
    curve = LayerCurve(shapes=((2, 8, 8), (4, 8, 8)), losses=(1.0, 0.5))
    with pytest.raises(InputError, match=r"below the smallest possible one, 8,192 \(parameters"):
        allocate([curve, curve], 8000, width=64)


@given(seed=st.integers(0, 2**32), multiple=st.sampled_from([4, 8, 16]))
@settings(max_examples=30)
def test_allocations_keep_to_budget_and_multiples_and_more_budget_never_hurts(
    seed: int, multiple: int
) -> None:
    rng = np.random.default_rng(seed)
    shapes = tuple((h, d, d) for h in (1, 2, 4, 8) for d in (4, 8, 12, 16, 24, 32))
    curves = [
        LayerCurve(shapes, tuple(a * h**-q + b * d**-q for h, d, _ in shapes))
        for a, b, q in rng.uniform(0.1, 2, (5, 3))
    ]
    least = 5 * parameters(64, 1, multiple, multiple)
    budgets = least + np.sort(rng.random(3)) * 100_000
    found = [allocate(curves, b, width=64, multiple=multiple) for b in budgets]
    for allocation, budget in zip(found, budgets, strict=True):
        assert allocation.cost <= budget
        assert allocation.cost == sum(parameters(64, *shape) for shape in allocation.layers)
        assert all(q % multiple == v % multiple == 0 for _, q, v in allocation.layers)
    losses = [allocation.loss for allocation in found]
    assert losses == sorted(losses, reverse=True)


def test_costs_are_what_a_layer_has() -> None:
    import torch

    width, heads, qk_dim, v_dim = 24, 3, 4, 8
    into = sum(torch.nn.Linear(width, heads * n, bias=False).weight.numel() for n in (4, 4, 8))
    out = torch.nn.Linear(heads * v_dim, width, bias=False).weight.numel()
    assert parameters(width, heads, qk_dim, v_dim) == into + out
    assert cache_bytes(heads, qk_dim, v_dim, element_bytes=4) == 4 * 3 * 12
    # One token: two operations a weight; a score and a weighted value for every key.
    assert flops(width, heads, qk_dim, v_dim, length=10) == 2 * (into + out) + 2 * 10 * 3 * 12
    assert cost_function("cache", width)(heads, qk_dim, v_dim) == 72
    with pytest.raises(InputError, match="give the number of tokens"):
        cost_function("flops", width)
    with pytest.raises(InputError, match="not 'watts'"):
        cost_function("watts", width)
    with pytest.raises(InputError, match="multiples of 16"):
        allocate([LayerCurve(((1, 8, 8),), (0.0,))], 1e9, width=8, multiple=16)


def sweep(
    noise: float, seed: int, heads: list[int] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """error = 0.5·H^-1.2 + 0.8·d^-0.8 at H·d = 128, four seeds a setting."""
    rng = np.random.default_rng(seed)
    h = np.repeat(heads or [1, 2, 4, 8, 16, 32, 64, 128], 4)
    d = 128 // h
    errors = (0.5 * h**-1.2 + 0.8 * d**-0.8) * np.exp(noise * rng.standard_normal(len(h)))
    return h, d, errors


def test_without_noise_the_fit_finds_what_made_the_data() -> None:
    fit = fit_tradeoff(*sweep(0.0, 0))
    assert not fit.unidentified
    assert fit.exponent.value == pytest.approx(1.2, rel=0.01)
    assert fit.tail_exponent is not None
    assert fit.tail_exponent.value == pytest.approx(0.8, rel=0.01)
    assert fit.head_scale.value == pytest.approx(0.5, rel=0.01)
    grid = np.geomspace(1, 128, 10_001)
    best = grid[(0.5 * grid**-1.2 + 0.8 * (128 / grid) ** -0.8).argmin()]
    heads = fit.optimum(128).heads
    assert heads is not None
    assert heads.value == pytest.approx(best, rel=0.03)
    assert fit.error(8, 16) == pytest.approx(0.5 * 8**-1.2 + 0.8 * 16**-0.8, rel=1e-3)


def test_the_optimum_is_inside_its_interval_about_as_often_as_it_says() -> None:
    grid = np.geomspace(1, 128, 10_001)
    best = grid[(0.5 * grid**-1.2 + 0.8 * (128 / grid) ** -0.8).argmin()]
    covered = 0
    for seed in range(20):
        heads = fit_tradeoff(*sweep(0.05, seed), draws=50, seed=seed).optimum(128).heads
        covered += heads is not None and heads.low <= best <= heads.high
    assert covered >= 15  # 95 % of 20 is 19; fewer than 15 happen once in thousands


def test_a_known_tail_is_used_as_it_is() -> None:
    spectrum = np.exp(-0.3 * np.arange(129))

    def tail(dim: np.ndarray) -> np.ndarray:
        return np.interp(dim, np.arange(129), spectrum)

    h, d, _ = sweep(0.0, 0)
    errors = 0.2 * h**-0.7 + 3.0 * tail(d)
    fit = fit_tradeoff(h, d, errors, tail=tail)
    assert fit.tail_exponent is None
    assert fit.exponent.value == pytest.approx(0.7, rel=0.01)
    assert fit.tail_scale.value == pytest.approx(3.0, rel=0.01)


def test_what_the_sweep_does_not_determine_is_named() -> None:
    h, d, _ = sweep(0.05, 0)
    noise = np.exp(0.05 * np.random.default_rng(1).normal(size=len(h)))
    one_side = fit_tradeoff(h, np.full_like(d, 16), 0.5 * h**-1.2)
    assert "the dimension never varies" in one_side.unidentified["tail_scale"]
    assert one_side.optimum(128).heads is None
    few = fit_tradeoff(*sweep(0.05, 0, heads=[2, 4, 8]))
    assert "3 settings cannot determine 4 numbers" in few.unidentified["exponent"]
    falling = fit_tradeoff(h, d, 0.5 * h**-1.2 * noise)
    assert "tail_scale" in falling.unidentified
    assert "not known" in str(falling.optimum(128))


def test_an_optimum_at_the_edge_of_the_sweep_is_no_optimum() -> None:
    fit = fit_tradeoff(*sweep(0.001, 0, heads=[1, 2, 3, 4, 5]))
    if not fit.unidentified:
        assert "edge" in fit.optimum(128).sentence
    assert fit.optimum(128).heads is None
    assert fit_tradeoff(*sweep(0.0, 0)).optimum(10**6).heads is None


def test_a_form_that_does_not_fit_is_told_from_scatter() -> None:
    h, d, errors = sweep(0.02, 3)
    assert (fit_tradeoff(h, d, errors).misfit or 0) > 0.001
    bent = errors * np.where(h == 8, 2.0, 1.0)
    assert (fit_tradeoff(h, d, bent).misfit or 0) < 1e-6


@pytest.mark.parametrize("errors", [[1.0, 0.5, -0.1], [1.0, np.nan, 0.2], [1.0, 0.5]])
def test_errors_that_are_none_get_a_sentence(errors: list[float]) -> None:
    with pytest.raises(InputError):
        fit_tradeoff(np.array([1, 2, 4]), np.array([4, 2, 1]), np.array(errors))


def test_a_sum_beyond_double_precision_is_no_bound() -> None:
    items = [Item(np.array([1.0, 2.0]), np.array([3.0, 1.0]))]
    assert lower_bound(items, 3.0, 1e308) == -np.inf


def test_a_floor_of_any_kind_of_number_can_be_printed() -> None:
    h, d = np.array([1, 2, 4, 8, 1, 2]), np.array([2, 2, 4, 4, 8, 8])
    assert "error ≈ 0.125 + " in str(fit_tradeoff(h, d, 1 / h + 1 / d, floor=Fraction(1, 8)))  # type: ignore[arg-type]
