"""Lower bounds are not above, and upper bounds not below, what high precision gives."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.theory import BoundVerdict
from headwise.theory.allocation import extraction_bound
from headwise.theory.bound import readable, rounded_down, rounded_up
from headwise.theory.head_count import (
    heads_needed,
    lower_bound_exponent,
    softmax_leakage,
    softmax_min_error,
)
from headwise.theory.rank import banded_error_bound, error_lower_bound, vote_error
from headwise.theory.rank import heads_needed as rank_heads
from headwise.theory.saturation import attention_shift, output_shift, row_distance

mpmath.mp.dps = 50


def exact_sum(dim: int, rank: int, heads: int, values: str, highest: int) -> mpmath.mpf:
    """The rank bound in exact integers and fifty digits."""
    total = mpmath.mpf(0)
    eigenvalue = mpmath.gamma(mpmath.mpf(dim) / 2) / (
        mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(dim + 1) / 2)
    )
    for degree in range(1, highest + 1, 2):
        size = (2 * degree + dim - 2) * math.comb(degree + dim - 3, degree - 1) // degree
        reach = [degree] if values == "scalar" else [degree - 2, degree, degree + 2]
        covered = heads * sum(math.comb(rank + j - 1, j) for j in reach if j >= 0)
        total += eigenvalue**2 * size * max(mpmath.mpf(0), 1 - mpmath.mpf(covered) / size)
        eigenvalue *= mpmath.mpf(degree) / (degree + dim)
    return total / 2


@settings(max_examples=25, deadline=None)
@given(
    dim=st.integers(3, 40),
    rank=st.integers(1, 6),
    heads=st.integers(1, 10**15),
    values=st.sampled_from(["general", "scalar"]),
)
def test_the_rank_bound_is_rounded_down(dim: int, rank: int, heads: int, values: str) -> None:
    rank = min(rank, dim - 1)
    found = error_lower_bound(dim, rank, heads, values, highest_degree=99)  # type: ignore[arg-type]
    exact = exact_sum(dim, rank, heads, values, 99)
    if found.value is not None:
        assert found.value <= exact
        assert found.value >= exact * (1 - mpmath.mpf("1e-8")) - mpmath.mpf("1e-12")


@pytest.mark.parametrize(
    ("dim", "rank", "error", "values"),
    [
        (12, 3, 0.001, "scalar"),
        (64, 8, 0.1, "general"),
        (16, 2, 0.05, "general"),
        (40, 5, 0.01, "scalar"),
    ],
)
def test_heads_needed_are_never_more_than_needed(
    dim: int, rank: int, error: float, values: str
) -> None:
    heads = rank_heads(dim, rank, error, values, highest_degree=199).value  # type: ignore[arg-type]
    assert isinstance(heads, int)
    assert exact_sum(dim, rank, heads - 1, values, 199) > error  # one head fewer is ruled out
    more = heads + 1 + heads // 10**8
    assert exact_sum(dim, rank, more, values, 199) <= error


def test_a_bound_that_rules_nothing_out_is_vacuous() -> None:
    bound = rank_heads(64, 8, 0.6)
    assert bound.verdict is BoundVerdict.VACUOUS
    assert bound.value is None
    assert vote_error(64, 2).upper.verdict is BoundVerdict.VACUOUS
    assert vote_error(64, 4096).upper.value is not None


@given(
    heads=st.integers(1, 50),
    extra=st.integers(1, 50),
    length=st.integers(1, 10**6),
    head_dim=st.integers(1, 64),
)
def test_the_exponent_is_rounded_down(heads: int, extra: int, length: int, head_dim: int) -> None:
    features = heads + extra
    found = lower_bound_exponent(heads, features, length, head_dim).value
    exact = (Fraction(length, 4) - heads - features + 1) / ((head_dim + 1) * heads + 1) - 1
    if exact <= 0:
        assert found is None
    else:
        assert found is not None
        assert Fraction(found) <= exact < Fraction(math.nextafter(found, math.inf))


@settings(max_examples=50, deadline=None)
@given(count=st.integers(2, 10**9), log_temperature=st.floats(-8, 3))
def test_softmax_errors_are_rounded_up(count: int, log_temperature: float) -> None:
    temperature = 10.0**log_temperature
    exact = temperature * mpmath.lambertw(mpmath.mpf(count - 1) / mpmath.e).real
    found = softmax_min_error(count, temperature).value
    assert found is not None
    assert exact <= found <= exact * (1 + mpmath.mpf("1e-12"))


@settings(max_examples=50, deadline=None)
@given(outside=st.integers(1, 10**9), temperature=st.floats(1e-3, 10), gate=st.floats(0.1, 50))
def test_leakage_is_rounded_up(outside: int, temperature: float, gate: float) -> None:
    terms = outside * mpmath.exp(-(mpmath.mpf(gate) - 1) / mpmath.mpf(temperature))
    found = softmax_leakage(outside, temperature, gate, 1.0).value
    assert found is not None
    assert terms / (1 + terms) <= found


@given(epsilon=st.floats(1e-6, 4), score=st.floats(1e-3, 3), length=st.integers(1, 10**6))
def test_saturation_is_rounded_up(epsilon: float, score: float, length: int) -> None:
    shift = attention_shift(epsilon).value
    assert shift is not None
    assert shift >= mpmath.tanh(mpmath.mpf(epsilon) / 2)
    distance = row_distance(epsilon, score, length).value
    exact = mpmath.exp(mpmath.mpf(score)) * mpmath.mpf(epsilon) / mpmath.sqrt(length)
    assert distance is None or distance >= exact


def test_what_is_proved_names_what_it_assumes() -> None:
    text = str(heads_needed(3))
    for words in ("assumption 1", "assumption 2", "assumption 3", "weight norms"):
        assert words in " ".join(text.split())


def test_one_dimension_a_head_is_promised_nothing() -> None:
    assert "from head_dim 2 on" in lower_bound_exponent(4, 4, 128, 1).statement
    assert "promises an efficient network here" in lower_bound_exponent(4, 4, 128, 2).statement


def test_more_features_than_tokens_are_no_mistake() -> None:
    assert lower_bound_exponent(2, 9, 5, 2).verdict is BoundVerdict.VACUOUS


def test_upper_bounds_that_underflow_do_not_become_zero() -> None:
    assert output_shift(1e-300, 1e-300).value > 0
    assert softmax_min_error(2, 5e-324).value > 0
    assert softmax_leakage(0, 1.0, 1.0, 1.0).value == 0  # exactly: nothing is ignored


def test_a_large_number_is_read_as_it_is() -> None:
    assert readable(10**45 - 1) == "9.99e+44"
    assert readable(10**45) == "1.00e+45"
    assert readable(10**15 - 1) == "1e+15"


def test_a_kernel_whose_squares_overflow_is_refused() -> None:
    with pytest.raises(InputError, match="at most 1e"):
        extraction_bound(np.full((2, 2, 2), 1e308), 1, 1)


def test_the_banded_bound_says_how_much_of_the_target_it_counted() -> None:
    few = banded_error_bound(16, 1, 1, highest_degree=5)
    assert few.value is None or few.value < 0.01
    assert any("of the target; more can only raise" in each for each in few.assumptions)


@given(st.floats(1e-300, 1e300))
def test_what_is_printed_of_a_bound_is_still_one(value: float) -> None:
    below, above = float(rounded_down(value)), float(rounded_up(value))
    assert below <= value <= above
    assert above - below <= 1e-3 * above


def test_a_bound_is_printed_on_its_own_side() -> None:
    for bound, number in (
        (error_lower_bound(64, 8, 16), "0.1568"),  # 0.15688…
        (lower_bound_exponent(1, 4, 128, 4), "3.666"),  # 3 + 2/3
        (softmax_min_error(2, 0.1), "0.02785"),  # 0.027846…
    ):
        first, *rest = str(bound).splitlines()
        assert first.endswith(number)
        assert number in " ".join(rest)
