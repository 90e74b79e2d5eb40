"""What low rank reaches, in closed form, against layers that are run."""

import math

import numpy as np
import pytest

from headwise.core.errors import InputError
from headwise.theory.rank import (
    error_lower_bound,
    fit_random_features,
    random_features_error,
    vote_error,
)


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def sample(rng: np.random.Generator, count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal pairs (count, 2, dim) and queries (count, dim), all uniform on the sphere."""
    first = unit(rng.normal(size=(count, dim)))
    second = rng.normal(size=(count, dim))
    second -= (second * first).sum(1, keepdims=True) * first
    return np.stack([first, unit(second)], axis=1), unit(rng.normal(size=(count, dim)))


def random_heads(
    rng: np.random.Generator, heads: int, dim: int, *, aligned: bool
) -> tuple[np.ndarray, np.ndarray]:
    queries = unit(rng.normal(size=(heads, dim)))
    signs = np.where(np.arange(heads) % 2, -1, 1)[:, None]
    return queries, signs * queries if aligned else unit(rng.normal(size=(heads, dim)))


@pytest.mark.parametrize(
    ("dim", "heads", "aligned"), [(2, 12, False), (3, 40, True), (8, 200, False), (64, 300, True)]
)
def test_random_features_match_the_layer_when_run(dim: int, heads: int, aligned: bool) -> None:
    rng = np.random.default_rng([dim, heads])
    queries, keys = random_heads(rng, heads, dim, aligned=aligned)
    fitted = fit_random_features(queries, keys)
    errors = []
    for _ in range(10):
        points, query = sample(rng, 4000, dim)
        prefers_first = ((points[:, 0] - points[:, 1]) @ keys.T) * (query @ queries.T) > 0
        on_first, on_second = prefers_first @ fitted.weights, ~prefers_first @ fitted.weights
        output = on_first[:, None] * points[:, 0] + on_second[:, None] * points[:, 1]
        nearer = np.argmax(np.einsum("cpd,cd->cp", points, query), axis=1)
        errors.append(((output - points[np.arange(4000), nearer]) ** 2).sum(1))
    measured = np.concatenate(errors)
    noise = measured.std() / math.sqrt(len(measured))
    assert measured.mean() == pytest.approx(fitted.error, abs=5 * noise)
    assert random_features_error(queries, keys).value == fitted.error


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize(("dim", "heads"), [(4, 16), (8, 256), (16, 16), (16, 256)])
def test_random_features_never_beat_the_lower_bound(dim: int, heads: int, aligned: bool) -> None:
    rng = np.random.default_rng([dim, heads, aligned])
    reached = fit_random_features(*random_heads(rng, heads, dim, aligned=aligned)).error
    bound = error_lower_bound(dim, 1, heads, "scalar", highest_degree=2**15 - 1).value
    assert bound is not None
    assert bound <= reached < 1


@pytest.mark.parametrize(("dim", "expected"), [(16, 0.172), (32, 0.18), (64, 0.185)])
def test_aligned_random_features_come_near_the_published_errors(dim: int, expected: float) -> None:
    """Published for 2^14 heads; already at 2^12 the directions k = ±q are within 0.01 of them."""
    rng = np.random.default_rng(dim)
    reached = fit_random_features(*random_heads(rng, 2**12, dim, aligned=True)).error
    assert reached == pytest.approx(expected, abs=0.01)


def test_more_heads_help_and_repeated_heads_do_not() -> None:
    queries, keys = random_heads(np.random.default_rng(3), 64, 8, aligned=False)
    half = fit_random_features(queries[:32], keys[:32]).error
    full = fit_random_features(queries, keys).error
    twice = fit_random_features(np.tile(queries, (2, 1)), 5 * np.tile(keys, (2, 1))).error
    assert full < half
    assert twice == pytest.approx(full, abs=1e-9)


@pytest.mark.parametrize(
    ("queries", "keys", "sentence"),
    [
        (np.ones((3, 4)), np.ones((2, 4)), "one shape"),
        (np.ones(3), np.ones(3), "heads × dim"),
        (np.ones((3, 1)), np.ones((3, 1)), "dim ≥ 2"),
        (np.zeros((3, 4)), np.ones((3, 4)), "not zero"),
        (np.ones((3, 4)), np.full((3, 4), np.nan), "finite"),
        (np.ones((40_000, 2)), np.ones((40_000, 2)), "13 GB"),
    ],
)
def test_bad_directions_get_a_sentence(
    queries: np.ndarray, keys: np.ndarray, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        random_features_error(queries, keys)


@pytest.mark.parametrize(("dim", "heads"), [(2, 1), (3, 8), (16, 65), (64, 256)])
def test_the_expected_vote_matches_votes_that_are_cast(dim: int, heads: int) -> None:
    rng = np.random.default_rng([dim, heads])
    wrong = []
    for _ in range(60):  # fresh directions each time: the formula is a mean over them
        directions = rng.normal(size=(heads, dim))
        points, query = sample(rng, 1000, dim)
        gap = points[:, 0] - points[:, 1]
        margin = np.sign((gap @ directions.T) * (query @ directions.T)).sum(1)
        agreement = margin * np.sign((gap * query).sum(1))
        wrong.append(np.mean(agreement < 0) + 0.5 * np.mean(agreement == 0))
    noise = 2 * np.std(wrong) / math.sqrt(len(wrong))
    vote = vote_error(dim, heads)
    assert vote.expected.value == pytest.approx(2 * np.mean(wrong), abs=5 * noise)


@pytest.mark.parametrize("heads", [1, 2, 7, 100, 1024, 4096, 10**9])
@pytest.mark.parametrize("dim", [2, 5, 64, 4096])
def test_the_upper_bound_is_above_and_the_estimate_close(dim: int, heads: int) -> None:
    estimate, expected, upper = (bound.value for bound in vote_error(dim, heads))
    assert estimate is not None
    assert expected is not None
    upper = 1.0 if upper is None else upper  # vacuous: no vote is worse than guessing
    assert 0 < expected <= upper <= 1
    if dim >= 64 and heads >= 100:
        assert estimate == pytest.approx(expected, rel=0.06)


def test_known_votes() -> None:
    assert vote_error(2, 1).expected.value == pytest.approx(0.5)  # angle uniform: ¼ of votes wrong
    assert vote_error(64, 4096).expected.value == pytest.approx(0.122, abs=0.001)
    assert vote_error(64, 1024).estimate.value == pytest.approx(0.238, abs=0.001)
    # A coin for ties: an even vote is as good as one with a voter fewer.
    assert vote_error(9, 10).expected.value == pytest.approx(vote_error(9, 9).expected.value)


@pytest.mark.parametrize(("dim", "heads"), [(1, 4), (4, 0), (4, -1), (4, 10**12)])
def test_a_vote_needs_sizes_that_make_sense(dim: int, heads: int) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        vote_error(dim, heads)
