"""Saturation: true for all scores, attained, and called vacuous where it says nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.theory import BoundVerdict
from headwise.theory.saturation import (
    attention_shift,
    check_head,
    output_shift,
    row_changes,
    row_distance,
)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def random_head(seed: int, causal: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys, dim = int(rng.integers(1, 40)), int(rng.integers(1, 6))
    scores = rng.normal(size=(keys, keys)) * rng.exponential(3)
    reduced = scores + rng.normal(size=scores.shape) * rng.exponential(2) + rng.normal() * 5
    if causal:
        hidden = np.triu(np.ones((keys, keys), bool), 1)
        scores[hidden] = reduced[hidden] = -np.inf
    return scores, reduced, rng.normal(size=(keys, dim))


@given(seed=st.integers(0, 2**32), causal=st.booleans())
def test_no_head_breaks_its_certificate(seed: int, causal: bool) -> None:
    scores, reduced, values = random_head(seed, causal)
    check = check_head(scores, reduced, values)
    before, after = softmax(scores), softmax(reduced)
    assert check.holds
    assert check.attention_measured == pytest.approx(np.abs(after - before).sum(-1).max() / 2)
    moved = np.linalg.norm((after - before) @ values, axis=1).max()
    assert check.output_measured == pytest.approx(moved)


@given(epsilon=st.floats(1e-3, 5))
def test_the_shift_is_attained_by_two_keys(epsilon: float) -> None:
    scores = np.array([[-epsilon, 0.0]])
    reduced = scores + np.array([[epsilon, -epsilon]])
    change = row_changes(scores, reduced)
    assert change.epsilon[0] == pytest.approx(epsilon)
    assert change.shift[0] == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    values = np.array([[0.0, 0.0], [3.0, 4.0]])
    check = check_head(scores, reduced, values)
    assert check.output_measured == pytest.approx(check.output_bound, rel=1e-9)


@given(
    spread=st.floats(0.01, 3),
    length=st.integers(2, 500),
    seed=st.integers(0, 2**32),
)
def test_no_row_moves_further_than_the_jacobian_allows(
    spread: float, length: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = [rng.uniform(-1, 1, length) * spread for _ in range(2)]
    change = ends[1] - ends[0]
    half = float(np.ptp(change)) / 2
    moved = float(np.linalg.norm(softmax(ends[1]) - softmax(ends[0])))
    for sharp in (True, False):
        value = row_distance(half, spread, length, sharp=sharp).value
        assert value is None or moved <= value * (1 + 1e-9)


def test_the_sharp_distance_is_attained_in_the_limit_and_the_plain_one_is_not_below_it() -> None:
    length, epsilon = 1000, 1e-4
    signs = np.where(np.arange(length) % 2 == 0, 1.0, -1.0)
    moved = np.linalg.norm(softmax(epsilon * signs) - softmax(0 * signs))
    value = row_distance(epsilon, epsilon, length).value
    assert value is not None
    assert moved == pytest.approx(value, rel=1e-3)
    plain = row_distance(1.0, 1.0, length, sharp=False).value
    sharp = row_distance(1.0, 1.0, length).value
    assert plain is not None
    assert sharp is not None
    assert plain == pytest.approx(math.e**2 / math.sqrt(length))
    assert sharp == pytest.approx(plain / math.e)


def test_bounds_that_say_nothing_are_vacuous() -> None:
    assert attention_shift(1.0).value == pytest.approx(math.tanh(0.5))
    assert attention_shift(8.0).verdict is BoundVerdict.VACUOUS
    assert output_shift(8.0, 1.0).value is None
    assert row_distance(0.5, 6.0, 64).verdict is BoundVerdict.VACUOUS
    assert row_distance(0.5, 900.0, 64).value is None
    assert row_distance(0.5, 1.0, 4096).verdict is BoundVerdict.HOLDS
    scores = np.zeros((1, 2))
    assert check_head(scores, np.array([[20.0, -20.0]]), np.eye(2)).vacuous


@pytest.mark.parametrize(
    ("logits", "reduced", "values", "sentence"),
    [
        (np.zeros((2, 3)), np.zeros((2, 4)), np.zeros((3, 1)), "rows × keys"),
        (np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 1)), "keys × dimensions"),
        (np.zeros(3), np.zeros(3), np.zeros((3, 1)), "must be a matrix"),
        (np.full((1, 2), np.nan), np.zeros((1, 2)), np.zeros((2, 1)), "holds NaN"),
        (np.full((1, 2), -np.inf), np.full((1, 2), -np.inf), np.eye(2), "at least one"),
        (np.array([[0.0, -np.inf]]), np.zeros((1, 2)), np.eye(2), "same keys"),
        ([["a"]], [["b"]], [["c"]], "array of numbers"),
    ],
)
def test_scores_that_are_none_get_a_sentence(
    logits: object, reduced: object, values: object, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        check_head(logits, reduced, values)  # type: ignore[arg-type]


def test_a_formula_beyond_double_precision_is_not_given_a_number() -> None:
    bound = row_distance(0.1, 800.0, 4)
    assert bound.value is None
    assert "or more, no less than" in bound.statement
    assert "or more" not in row_distance(0.1, 20.0, 4).statement
