"""The rank lower bound: its published values, its proof's steps, and layers that try to beat it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import eval_gegenbauer

from headwise.core.errors import InputError
from headwise.theory import BoundVerdict, Status
from headwise.theory.rank import PLATEAU, error_lower_bound, heads_needed, published_rates
from headwise.theory.rank.harmonics import (
    log_dimensions,
    log_invariant_dimensions,
    log_sign_eigenvalues,
    log_sign_masses,
    zonal_sum,
)


def least_error(dim: int, rank: int, heads: int, **options: object) -> float:
    return error_lower_bound(dim, rank, heads, **options).value or 0.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("case", "general", "scalar"),
    [
        ((16, 1, 1), 0.4563, 0.4770),
        ((16, 1, 16), 0.1657, 0.1680),
        ((16, 1, 256), 0.1132, 0.1505),
        ((64, 1, 64), 0.1743, 0.1744),
    ],
)
def test_known_values(case: tuple[int, int, int], general: float, scalar: float) -> None:
    assert least_error(*case) == pytest.approx(general, abs=1e-4)
    assert least_error(*case, values="scalar") == pytest.approx(scalar, abs=1e-4)


def test_the_dimensions_are_those_of_harmonics() -> None:
    for dim in (2, 3, 8, 64):
        for degree in range(2, 12):
            of_degree = math.comb(degree + dim - 1, dim - 1)
            assert math.exp(log_dimensions(dim, 12)[degree]) == pytest.approx(
                of_degree - math.comb(degree + dim - 3, dim - 1)
            )
            assert math.exp(log_invariant_dimensions(dim, 12)[degree]) == pytest.approx(of_degree)


def test_the_eigenvalues_are_integrals_of_the_sign_against_gegenbauer() -> None:
    for dim in (3, 5, 16):
        half = dim / 2 - 1
        mass = quad(lambda t, p=half - 0.5: (1 - t * t) ** p, -1, 1)[0]
        for index, degree in enumerate((1, 3, 5, 7)):

            def integrand(t: float, n: int = degree, a: float = half) -> float:
                gegenbauer = eval_gegenbauer(n, a, t) / eval_gegenbauer(n, a, 1.0)
                return float(2 * gegenbauer * (1 - t * t) ** (a - 0.5))

            value = quad(integrand, 0, 1)[0] / mass
            expected = (-1) ** index * math.exp(log_sign_eigenvalues(dim, 9)[index])
            assert value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dim", [2, 3, 16, 64, 4096])
def test_the_masses_sum_to_one(dim: int) -> None:
    total = np.exp(log_sign_masses(dim, 2**20 - 1)).sum()
    assert 1 - 2e-4 < total < 1


def test_zonal_sums_follow_gegenbauer() -> None:
    points = np.linspace(-1, 1, 7)
    direct = 2 * points + 3 * eval_gegenbauer(3, 1.5, points) / eval_gegenbauer(3, 1.5, 1.0)
    assert zonal_sum(np.array([2.0, 3.0]), 5, points) == pytest.approx(direct)


@pytest.mark.parametrize(("dim", "rank"), [(16, 1), (5, 2), (5, 4), (8, 4)])
def test_one_scalar_head_is_bounded_exactly(dim: int, rank: int) -> None:
    """An oracle without harmonics: the best head knows W w and y, and answers E[sgn⟨w,y⟩ | W w, y].

    Its error is ½(1 − E sgn⟨w,y⟩ sgn⟨w',y⟩), w and w' independent with the same first `rank`
    coordinates; averaging over y first turns the product into (2/π) asin⟨w,w'⟩.
    """
    rng = np.random.default_rng([dim, rank])
    count = 400_000
    w = rng.normal(size=(count, dim))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    other = rng.normal(size=(count, dim - rank))
    hidden = w[:, rank:]
    other *= np.linalg.norm(hidden, axis=1, keepdims=True) / np.linalg.norm(
        other, axis=1, keepdims=True
    )
    cosine = (w[:, :rank] ** 2).sum(1) + (hidden * other).sum(1)
    agreement = 2 / np.pi * np.arcsin(np.clip(cosine, -1, 1))
    measured = 0.5 * (1 - agreement.mean())
    noise = 0.5 * agreement.std() / math.sqrt(count)
    exact = least_error(dim, rank, 1, values="scalar", highest_degree=2**17 - 1)
    assert measured == pytest.approx(exact, abs=5 * noise + 1e-4)


@pytest.mark.parametrize(
    ("dim", "rank", "heads", "hard"), [(5, 1, 4, True), (6, 2, 3, False), (8, 1, 8, True)]
)
def test_no_layer_of_random_heads_with_fitted_values_beats_the_bound(
    dim: int, rank: int, heads: int, hard: bool
) -> None:
    """General M_h, fitted by least squares on one sample and scored on another."""
    rng = np.random.default_rng([dim, rank, heads])
    queries, keys = rng.normal(size=(2, heads, rank, dim))

    def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
        pair = np.linalg.qr(rng.normal(size=(count, dim, 2)))[0]
        points = pair.swapaxes(1, 2) * rng.choice([-1, 1], size=(count, 2, 1))
        query = rng.normal(size=(count, dim))
        nearer = np.argmax(points @ query[:, :, None], axis=1)[:, 0]
        scores = np.einsum("hrd,cpd,hre,ce->chp", keys, points, queries, query, optimize=True)
        gap = scores[..., 0] - scores[..., 1]
        first = (gap > 0).astype(float) if hard else 1 / (1 + np.exp(-3 * gap))
        picked = np.stack([first, 1 - first], axis=-1) @ points
        return picked.reshape(count, -1), points[np.arange(count), nearer]

    features, targets = sample(40_000)
    values = np.linalg.lstsq(features, targets, rcond=None)[0]
    features, targets = sample(40_000)
    errors = ((features @ values - targets) ** 2).sum(1)
    bound = least_error(dim, rank, heads, highest_degree=2**15 - 1)
    assert errors.mean() >= bound - 4 * errors.std() / 200


def test_published_trained_layers_respect_the_bound_and_come_close() -> None:
    """Rank 1, two points, heads = dim: the authors' best trained errors."""
    for dim, trained in ((16, 0.172), (32, 0.180)):
        bound = least_error(dim, 1, dim, values="scalar", highest_degree=2**15 - 1)
        assert 0.95 * trained < bound < trained


sizes = st.integers(2, 4096)


@settings(max_examples=60)
@given(
    dim=sizes,
    share=st.floats(0, 1),
    heads=st.integers(1, 10**30),
    values=st.sampled_from(["general", "scalar"]),
)
def test_more_heads_and_more_rank_never_raise_the_bound(
    dim: int, share: float, heads: int, values: str
) -> None:
    rank = 1 + int(share * (dim - 1))
    here = least_error(dim, rank, heads, values=values)
    assert 0 <= here < 0.5
    assert least_error(dim, rank, 2 * heads, values=values) <= here
    if rank < dim:
        assert least_error(dim, rank + 1, heads, values=values) <= here
    assert least_error(dim, rank, heads, values="scalar") >= least_error(dim, rank, heads)
    assert least_error(dim, rank, heads, values=values, highest_degree=501) >= here


@settings(max_examples=60)
@given(dim=sizes, share=st.floats(0, 0.99), error=st.floats(1e-12, 0.999))
def test_heads_needed_inverts_the_bound(dim: int, share: float, error: float) -> None:
    rank = 1 + int(share * (dim - 2))
    heads = heads_needed(dim, rank, error).value
    if heads is None:
        assert least_error(dim, rank, 1) <= error
        return
    assert isinstance(heads, int)
    assert heads > 1
    enough = heads + (heads // 10**8 if heads >= 2**40 else 0)  # beyond, it is rounded down
    assert least_error(dim, rank, enough) <= error * (1 + 1e-6)
    fewer = heads - 1 if heads < 2**40 else heads * 999_999 // 1_000_000
    assert least_error(dim, rank, fewer) > error


def test_astronomic_answers_can_be_printed_and_sent() -> None:
    answer = heads_needed(4096, 1, 1e-9, highest_degree=2**20 - 1)
    assert answer.value == 10**4000
    assert answer.log10 == 4000
    assert "1.000e+4000" in str(answer)
    assert repr(answer)
    assert json.loads(json.dumps(answer.to_data()))["value"] == 10**4000


def test_the_plateau_is_what_degree_one_leaves() -> None:
    assert pytest.approx(0.5 * (1 - 2 / math.pi)) == PLATEAU
    assert least_error(10**6, 1, 10**6, highest_degree=2**20 - 1) == pytest.approx(
        PLATEAU, abs=0.01
    )


def test_full_rank_needs_one_head() -> None:
    assert error_lower_bound(8, 8, 1).verdict is BoundVerdict.NOT_APPLICABLE
    needed = heads_needed(8, 8, 1e-9)
    assert (needed.value, needed.status) == (1, Status.PROVED)


def test_silence_is_named() -> None:
    assert error_lower_bound(3, 1, 10**9).verdict is BoundVerdict.VACUOUS
    assert heads_needed(64, 8, 1.0).verdict is BoundVerdict.VACUOUS
    assert heads_needed(64, 8, 0.7).verdict is BoundVerdict.VACUOUS
    nearly_full = heads_needed(64, 63, 0.01)  # one head of this rank is never ruled out
    assert nearly_full.verdict is BoundVerdict.VACUOUS
    assert "below 0" not in nearly_full.statement


def test_the_papers_rates_are_rates() -> None:
    constant, accurate, biased = published_rates(64, 8, 0.1)
    assert constant.value == pytest.approx(math.log(8) / 0.1)
    assert accurate.value == pytest.approx(64 - 8 * math.log(8))
    assert biased.value == 56
    assert {b.verdict for b in (constant, accurate, biased)} == {BoundVerdict.RATE}
    assert {b.verdict for b in published_rates(4, 1, 0.1)} == {BoundVerdict.NOT_APPLICABLE}


HOSTILE = [
    (lambda: error_lower_bound(64, 65, 1), "rank must be at most dim = 64"),
    (lambda: error_lower_bound(1, 1, 1), "dim must be a whole number from 2"),
    (lambda: error_lower_bound(64, 8, 0), "heads must be a whole number of at least 1"),
    (lambda: error_lower_bound(64, 0, 1), "rank must be"),
    (lambda: error_lower_bound(64, 8, 8, "matrix"), "values must be"),  # type: ignore[arg-type]
    (lambda: error_lower_bound(64, 8, 8, highest_degree=0), "highest_degree must be"),
    (lambda: error_lower_bound(10**9, 8, 8), "dim must be"),
    (lambda: heads_needed(64, 8, -0.1), "error must be a number above 0"),
    (lambda: heads_needed(64, 8, 0), "error must be a number above 0"),
    (lambda: heads_needed(64, 8, math.nan), "error must be"),
    (lambda: heads_needed(64, 8, "much"), "error must be"),  # type: ignore[arg-type]
    (lambda: published_rates(8, 9, 0.1), "rank must be at most"),
]


@pytest.mark.parametrize(("call", "sentence"), HOSTILE)
def test_bad_input_gets_a_sentence(call: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()  # type: ignore[operator]


def test_heads_may_be_as_many_as_one_likes() -> None:
    assert error_lower_bound(4096, 1, 10**5000).verdict is BoundVerdict.VACUOUS
    assert error_lower_bound(4096, 1, 10**500).value is not None
