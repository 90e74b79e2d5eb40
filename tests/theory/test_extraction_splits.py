"""Splits of a budget of heads × dimension: forbidden and reached, against layers made by hand."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import nnls

from headwise.core.errors import InputError
from headwise.theory.allocation import ExtractionSplits, extraction_bound, extraction_splits


def rotations(lags: int, dim: int) -> np.ndarray:
    rng = np.random.default_rng(lags * dim)
    return np.stack([np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(lags)])


def at(found: ExtractionSplits, heads: int) -> tuple[float, float]:
    row = next(each for each in found.splits if each.heads == heads)
    return row.forbidden_below, row.reached


@pytest.mark.parametrize("seed", range(8))
def test_some_layer_reaches_what_is_said(seed: int) -> None:
    """Every assignment of heads to lags is tried, and each lag's matrix is cut by hand."""
    rng = np.random.default_rng(seed)
    lags, out, into = rng.integers(1, 5), rng.integers(1, 5), rng.integers(1, 5)
    kernel = rng.standard_normal((lags, out, into)) * rng.exponential(1, (lags, 1, 1))
    found = extraction_splits(kernel, 6)
    for heads, dim in ((1, 6), (2, 3), (3, 2), (6, 1)):
        errors = []
        for chosen in combinations_with_replacement(range(lags), heads):
            error = 0.0
            for lag, matrix in enumerate(kernel):
                left, sizes, right = np.linalg.svd(matrix)
                rank = min(chosen.count(lag) * dim, len(sizes))
                cut = (left[:, :rank] * sizes[:rank]) @ right[:rank]
                error += float(np.square(matrix - cut).sum())
            errors.append(error)
        below, reached = at(found, heads)
        assert below <= reached <= min(errors) + 1e-9
        if dim < min(out, into):
            assert reached == pytest.approx(min(errors), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_distributions_do_better_than_what_is_forbidden(seed: int) -> None:
    """Alternating least squares over patterns that are not negative, from several starts."""
    rng = np.random.default_rng(100 + seed)
    lags, dim = 5, 3
    kernel = rng.standard_normal((lags, dim, dim))
    flat = kernel.reshape(lags, -1)
    found = extraction_splits(kernel, 6)
    for heads, head_dim in ((1, 6), (2, 3), (3, 2), (6, 1)):
        best = np.inf
        for _ in range(3):
            patterns = rng.random((lags, heads))
            for _ in range(60):
                maps = np.linalg.lstsq(patterns, flat, rcond=None)[0]
                left, sizes, right = np.linalg.svd(maps.reshape(heads, dim, dim))
                sizes[:, head_dim:] = 0
                maps = ((left * sizes[:, None]) @ right).reshape(heads, -1)
                patterns = np.stack([nnls(maps.T, row)[0] for row in flat])
            best = min(best, float(np.square(flat - patterns @ maps).sum()))
        below, reached = at(found, heads)
        assert below <= best + 1e-9
        if head_dim >= dim:
            assert best >= below - 1e-9
            assert reached <= below + np.square(np.linalg.svd(flat)[1])[heads - 1] + 1e-9


def test_a_fourgram_takes_a_head_a_lag_and_no_more_is_better() -> None:
    found = extraction_splits(rotations(4, 8), 32)
    assert found.best == (4, 8, 16, 32)
    assert "can be exact" in found.sentence
    for heads in (1, 2):
        below = extraction_bound(rotations(4, 8), heads, 32 // heads).value
        assert below is not None
        assert at(found, heads)[0] == pytest.approx(below, rel=1e-12)


def test_forbidden_and_reached_meet_where_wide_heads_have_positive_patterns() -> None:
    rng = np.random.default_rng(0)
    kernel = np.einsum("lk,koi->loi", rng.random((6, 4)), rng.standard_normal((4, 3, 3)))
    kernel += np.einsum("l,oi->loi", 5 + rng.random(6), rng.standard_normal((3, 3)))
    found = extraction_splits(kernel, 12)
    for heads in (1, 2, 3, 4):
        below, reached = at(found, heads)
        assert reached == pytest.approx(below, rel=1e-6, abs=1e-9)


def test_a_best_split_that_is_proved_is_named() -> None:
    kernel = np.stack([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])  # a number of each of two tokens
    found = extraction_splits(kernel, 2)  # one head of 2, or two of 1
    assert found.best == (2,)
    assert found.sentence == "The best is 2 heads."
    assert [row["may_be_best"] for row in found.records()] == [False, True]
    assert found.to_pandas()["head_dim"].tolist() == [2, 1]


def test_a_kernel_of_one_sign_needs_no_further_head() -> None:
    assert at(extraction_splits(np.ones((5, 2, 2)), 2), 1)[1] < 1e-9
    assert at(extraction_splits(np.zeros((5, 2, 2)), 2), 1)[1] < 1e-9
    signs = np.array([1.0, -1.0])[:, None, None] * np.ones((2, 1, 1))
    assert at(extraction_splits(signs, 1), 1)[1] == pytest.approx(1.0)


@pytest.mark.parametrize("budget", [0, -1, 2.5, "4", None, True, 10**7, float("nan")])
def test_wrong_budgets_are_refused(budget: object) -> None:
    with pytest.raises(InputError, match="budget must be a whole number from 1 to 1,000,000"):
        extraction_splits(np.ones((1, 1, 1)), budget)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kernel", [None, "x", np.ones(3), [[[np.nan]]], [[["a"]]], np.ones((1, 0, 2))]
)
def test_wrong_kernels_are_refused(kernel: object) -> None:
    with pytest.raises(InputError, match="kernel"):
        extraction_splits(kernel, 4)  # type: ignore[arg-type]
