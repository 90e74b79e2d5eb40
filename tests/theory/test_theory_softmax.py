"""The softmax certificates: true for all values, and attained."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.theory.head_count import softmax_leakage, softmax_min_error
from headwise.theory.saturation import output_shift

counts = st.integers(2, 400)
temperatures = st.floats(1e-3, 1e3)


def softmin_mean(values: np.ndarray, temperature: float, gate: np.ndarray | float = 0.0) -> float:
    scores = -(values + gate) / temperature
    weights = np.exp(scores - scores.max())
    return float(weights @ values / weights.sum())


@given(count=counts, temperature=temperatures, seed=st.integers(0, 2**32))
def test_no_values_exceed_the_sharp_bound_nor_the_sharp_bound_the_log_form(
    count: int, temperature: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = temperature * rng.exponential(rng.uniform(0.1, 10), size=count)
    sharp = softmax_min_error(count, temperature).value
    loose = softmax_min_error(count, temperature, sharp=False).value
    assert sharp is not None
    assert loose is not None
    excess = softmin_mean(values, temperature) - values.min()
    assert -1e-9 * temperature <= excess <= sharp * (1 + 1e-9)
    assert sharp <= loose


@given(count=counts, temperature=temperatures)
def test_the_sharp_bound_is_attained(count: int, temperature: float) -> None:
    sharp = softmax_min_error(count, temperature).value
    assert sharp is not None
    values = np.full(count, sharp + temperature)
    values[0] = 0
    assert softmin_mean(values, temperature) == pytest.approx(sharp, rel=1e-9)


@given(
    inside=st.integers(1, 60),
    outside=st.integers(0, 60),
    temperature=st.floats(0.01, 2),
    gate=st.floats(0.1, 6),
    value_range=st.floats(0.1, 3),
    seed=st.integers(0, 2**32),
)
def test_gated_positions_move_the_output_by_at_most_the_leakage(
    inside: int, outside: int, temperature: float, gate: float, value_range: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = value_range * rng.beta(0.3, 0.3, size=inside + outside)
    gates = np.where(np.arange(inside + outside) < inside, 0, gate)
    moved = softmin_mean(values, temperature, gates) - softmin_mean(values[:inside], temperature)
    leakage = softmax_leakage(outside, temperature, gate, value_range).value
    assert leakage is not None
    assert abs(moved) <= leakage * (1 + 1e-9) + 1e-12


def test_the_leakage_is_nearly_attained() -> None:
    values = np.array([1.0] + [0.0] * 50)
    gates = np.array([0.0] + [2.0] * 50)
    moved = 1 - softmin_mean(values, 0.1, gates)
    assert moved == pytest.approx(softmax_leakage(50, 0.1, 2.0, 1.0).value, rel=1e-6)


def test_extreme_sizes() -> None:
    assert softmax_min_error(1, 1.0).value == 0
    huge = softmax_min_error(10**5000, 1.0).value
    assert huge is not None
    assert math.isclose(huge + math.log(huge), 5000 * math.log(10) - 1)
    assert softmax_leakage(10, 1e-9, 2.0, 1.0).value == pytest.approx(0, abs=1e-300)
    assert softmax_leakage(10, 1e-9, 1.0, 2.0).value == pytest.approx(2)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_is_positive(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature must be a number above 0"):
        softmax_min_error(4, temperature)


def test_no_bound_is_infinite() -> None:
    largest = np.finfo(float).max
    with pytest.raises(InputError, match=r"temperature must be a number above 0 and up to 1e\+300"):
        softmax_min_error(100, largest)
    for bound in (
        softmax_min_error(10**400, 1e300),
        softmax_leakage(5, 1.0, 1.0, largest),
        output_shift(3.0, largest),
    ):
        assert bound.value is not None
        assert math.isfinite(bound.value)
        json.dumps(bound.to_data(), allow_nan=False)
