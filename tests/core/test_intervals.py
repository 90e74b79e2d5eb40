"""The one t-interval: scipy's own, calibrated, and near the bootstrap where that is good."""

from math import isnan

import numpy as np
import pytest
from scipy import stats

from headwise.core.intervals import Interval


@pytest.mark.parametrize("count", [2, 3, 10, 200])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_it_is_scipys_t_interval(count: int, level: float) -> None:
    values = np.random.default_rng(count).standard_normal(count) * 3 + 1
    found = Interval.of(values, level)
    low, high = stats.t.interval(level, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.mean, found.seeds) == (pytest.approx(values.mean()), count)


def test_it_is_near_the_bootstrap_of_many_values() -> None:
    values = np.random.default_rng(1).exponential(size=2000)
    found = Interval.of(values)
    resampled = stats.bootstrap((values,), np.mean, n_resamples=2000, rng=2).confidence_interval
    half = (found.high - found.low) / 2
    assert found.low == pytest.approx(resampled.low, abs=0.15 * half)
    assert found.high == pytest.approx(resampled.high, abs=0.15 * half)


def test_95_of_100_intervals_hold_the_mean() -> None:
    rows = np.random.default_rng(3).normal(2.0, 5.0, size=(4000, 4))
    held = np.mean([found.low <= 2.0 <= found.high for found in map(Interval.of, rows)])
    assert held == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("count", "spread", "least"), [(24, 1.0, 0.92), (60, 1.5, 0.92)])
def test_the_mean_of_skewed_values_is_held_where_the_plain_interval_misses(
    count: int, spread: float, least: float
) -> None:
    """Lognormal values, as damages are: most small, a few that make most of the sum."""
    rows = np.random.default_rng(5).lognormal(-spread * spread / 2, spread, size=(2000, count))
    plain, skewed = (
        np.mean([found.low <= 1.0 <= found.high for found in map(make, rows)])
        for make in (Interval.of, Interval.of_skewed)
    )
    assert plain < least - 0.03
    assert skewed > max(least - 0.03, plain + 0.03)


def test_of_few_skewed_values_it_seldom_ends_below_the_mean() -> None:
    """Five documents, as a second verdict may have: half of the samples look skewed downwards."""
    rows = np.random.default_rng(6).lognormal(-0.045, 0.3, size=(4000, 5))
    below = np.mean([Interval.of_skewed(row).high < 1.0 for row in rows])
    assert below < 0.039


def test_without_skewness_it_is_the_plain_interval() -> None:
    few_below = [0.50, 0.41, 0.20, 0.59, 0.48]
    for values in ([-1.0, 1.0, 3.0], [2.0, 2.0, 2.0], [1.0, 4.0], few_below, [7.0], []):
        plain, skewed = Interval.of(values), Interval.of_skewed(values)
        assert (skewed.low, skewed.high) == pytest.approx((plain.low, plain.high), nan_ok=True)
        assert skewed.seeds == plain.seeds


def test_one_value_has_a_mean_and_no_bounds_and_none_has_nothing() -> None:
    one = Interval.of([0.5])
    assert (one.mean, one.seeds) == (0.5, 1)
    assert isnan(one.low)
    assert isnan(one.high)
    none = Interval.of(iter(()))
    assert none.seeds == 0
    assert isnan(none.mean)


@pytest.mark.parametrize(
    ("values", "sign"),
    [
        ([-1.0, -1.1, -0.9], "better"),
        ([1.0, 1.1, 0.9], "worse"),
        ([-1.0, 1.0, 0.1], "not told apart"),
        ([-5.0], "not told apart"),
        ([0.0, 0.0, 0.0], "not told apart"),
    ],
)
def test_the_sign_of_a_difference_of_losses(values: list[float], sign: str) -> None:
    assert Interval.of(values).sign == sign


def test_it_prints_with_signs() -> None:
    assert str(Interval(0.25, -0.5, 1.0, 3)) == "+0.2500 [-0.5000, +1.0000]"
