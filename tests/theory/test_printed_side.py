"""Whatever bound is asked for, the digits that are printed are still a bound of that side."""

import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.theory import Bound, BoundVerdict
from headwise.theory.allocation import extraction_bound
from headwise.theory.head_count import lower_bound_exponent, softmax_leakage, softmax_min_error
from headwise.theory.rank import (
    error_lower_bound,
    fit_random_features,
    heads_needed,
    published_rates,
    vote_error,
)
from headwise.theory.saturation import attention_shift, check_head, output_shift, row_distance

COUNTS = st.integers(1, 10**6)
SIZES = st.floats(1e-9, 1e6)
ERRORS = st.floats(1e-12, 0.999)
DIMS = st.integers(2, 200)

QUESTIONS: list[tuple[Callable[..., Bound], tuple[st.SearchStrategy, ...]]] = [
    (lower_bound_exponent, (COUNTS, COUNTS, COUNTS, st.integers(1, 64))),
    (softmax_min_error, (COUNTS, SIZES)),
    (softmax_leakage, (COUNTS, SIZES, SIZES, SIZES)),
    (lambda dim, heads: error_lower_bound(dim, 1 + dim // 9, heads), (DIMS, COUNTS)),
    (lambda dim, error: heads_needed(dim, 1 + dim // 9, error), (DIMS, ERRORS)),
    (lambda dim, heads: vote_error(dim, heads).upper, (DIMS, COUNTS)),
    (lambda error: heads_needed(12, 3, error, "scalar"), (st.floats(1e-5, 5e-2),)),
    (attention_shift, (SIZES,)),
    (output_shift, (SIZES, SIZES)),
    (row_distance, (st.floats(1e-9, 5), st.floats(1e-9, 5), COUNTS)),
    (
        lambda seed, heads: extraction_bound(
            np.random.default_rng(seed).normal(size=(4, 3, 3)), heads, 1
        ),
        (COUNTS, st.integers(1, 3)),
    ),
]
CLAIM = re.compile(r"(at most|at least|below) ([0-9][0-9,]*\.?[0-9]*(?:e[+-]?[0-9]+)?)")


def number(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


@given(data=st.data())
@settings(max_examples=200)
def test_printed_digits_stay_on_the_bounds_side(data: st.DataObject) -> None:
    ask, arguments = data.draw(st.sampled_from(QUESTIONS))
    bound = ask(*(data.draw(each) for each in arguments))
    assert bound.side in ("lower", "upper"), bound.quantity
    if bound.value is None:
        return
    upper, exact = bound.side == "upper", Decimal(bound.value)
    shown = [str(bound).splitlines()[0].rsplit(": ", 1)[1]]
    claims = [text for _, text in CLAIM.findall(bound.statement)]
    shown += [text for text in claims if abs(number(text) - exact) <= abs(exact) / 99]
    for text in shown:
        assert number(text) >= exact if upper else number(text) <= exact, str(bound)


def test_a_count_of_more_than_nine_digits_is_printed_rounded_down() -> None:
    bound = heads_needed(12, 3, 0.001, "scalar")
    assert bound.value == 13_147_050_800_000
    assert str(bound).splitlines()[0] == "least number of heads: 1.314e+13"
    assert "at least 1.314e+13 heads" in bound.statement
    assert Decimal(10) ** Decimal(bound.to_data()["log10"]) <= bound.value
    # Heads that are asked for are rounded so that what is said of them stays true, too.
    assert "of 1.999e+10 heads" in error_lower_bound(64, 1, 19_999_999_999).statement


@given(seed=st.integers(0, 10**6), dim=st.sampled_from([2, 3, 5, 8, 16]), heads=st.integers(1, 60))
@settings(max_examples=40)
def test_no_lower_bound_is_above_what_a_layer_reaches(seed: int, dim: int, heads: int) -> None:
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(2, heads, dim))
    if seed % 2:
        keys = queries * rng.choice([-1, 1], (heads, 1))
    reached = fit_random_features(queries, keys).error
    for values in ("scalar", "general"):
        bound = error_lower_bound(dim, 1, heads, values)  # type: ignore[arg-type]
        assert bound.value is None or bound.value <= reached + 1e-6  # the closed form's own sum


@pytest.mark.parametrize("dim", [6, 20, 64])
def test_no_rate_is_given_where_few_heads_are_exact(dim: int) -> None:
    # dim + 1 heads of rank dim − 1 are exact: no rate beyond that can be true there.
    for rate in published_rates(dim, dim - 1, 1e-3):
        assert rate.verdict is BoundVerdict.NOT_APPLICABLE
        assert rate.value is None
    assert published_rates(dim, 1, 1e-3)[0].value is not None


@pytest.mark.parametrize(("dim", "heads"), [(5, 10**9), (1000, 10**9), (10**6, 10**9)])
def test_votes_of_very_many_heads(dim: int, heads: int) -> None:
    # In the limit of many voters only small angles matter: P(wrong | φ) is a normal tail, and the
    # density of φ there is c·cos^(dim−2) φ, close to c·exp(−(dim − 2) φ²/2).
    from math import atan, exp, lgamma, pi, sqrt

    density = 2 / sqrt(pi) * exp(lgamma(dim / 2) - lgamma((dim - 1) / 2))
    steepness, narrowness = 2 * sqrt(heads) / pi, sqrt(dim - 2)
    limit = 2 * density * atan(narrowness / steepness) / (sqrt(2 * pi) * narrowness)
    assert vote_error(dim, heads).expected.value == pytest.approx(limit, rel=1e-3)


def test_a_heads_certificate_is_not_below_its_own_inequality() -> None:
    from mpmath import mp, mpf, tanh

    with mp.workdps(40):
        for scale in (1e-7, 0.03, 1.0, 4.0):
            scores = np.array([[0.0, 1.0, 2.0]])
            check = check_head(scores, scores + scale * np.array([[1.0, 0, -1]]), np.eye(3))
            assert check.attention_bound >= tanh(mpf(check.epsilon) / 2)
            assert check.output_bound >= tanh(mpf(check.epsilon) / 2) * mp.sqrt(2)
