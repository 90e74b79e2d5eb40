"""Constructions from theorems, against oracles that know nothing of them."""

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import eval_gegenbauer

from headwise import build
from headwise.core.errors import InputError
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks import Neighbours, measure
from headwise.theory import BoundVerdict
from headwise.theory.allocation import extraction_bound
from headwise.theory.rank import (
    band_masses,
    band_thresholds,
    banded_error_bound,
    error_lower_bound,
    exact_below_full_rank,
)


@pytest.mark.parametrize("dim", [2, 4, 6, 8])
def test_one_rank_below_full_is_exact_in_even_dimensions(dim: int) -> None:
    layer = build.nearly_full_rank_layer(dim)
    task = Neighbours(dim=dim, points=2, sampler="orthogonal")
    assert measure(layer, task, 2000).error < 1e-12
    assert layer.heads == exact_below_full_rank(dim).value == dim + 1
    # No bound that forbids it may hold.
    assert error_lower_bound(dim, dim - 1, dim + 1).verdict is not BoundVerdict.HOLDS


@pytest.mark.parametrize("dim", [2, 4, 8, 10, 12])
def test_it_is_exact_to_the_last_digits_whatever_the_query(dim: int) -> None:
    rng = np.random.default_rng(dim)
    points = np.swapaxes(np.linalg.qr(rng.standard_normal((100, dim, 2)))[0], 1, 2)
    for queries in (
        1e6 * rng.standard_normal((100, dim)),
        rng.standard_cauchy((100, dim)),
        1e-6 * rng.standard_normal((100, dim)) + np.eye(dim)[0],
    ):
        tokens = torch.from_numpy(np.concatenate([points, queries[:, None]], 1))
        answers = build.nearly_full_rank_layer(dim)(tokens)[:, 0].numpy()
        scores = np.einsum("npd,nd->np", points, queries)
        nearer = points[np.arange(100), scores.argmax(1)]
        assert np.square(answers - nearer).sum(1).max() < 1e-28


@pytest.mark.parametrize(("dim", "error"), [(3, 0.022), (5, 0.0027)])
def test_in_odd_dimensions_the_same_heads_leave_a_rest(dim: int, error: float) -> None:
    task = Neighbours(dim=dim, points=2, sampler="orthogonal")
    found = measure(build.NearlyFullRankLayer(dim), task, 20_000)
    assert found.error == pytest.approx(error, abs=5 * found.standard_error + 1e-4)
    assert exact_below_full_rank(dim).verdict is BoundVerdict.NOT_APPLICABLE
    with pytest.raises(InputError, match="even dimensions"):
        build.nearly_full_rank_layer(dim)


def test_its_heads_see_what_their_rank_allows_and_give_distributions() -> None:
    layer = build.nearly_full_rank_layer(4)
    tokens, _ = Neighbours(dim=4, points=2, sampler="orthogonal").sample(100, seed=0)
    for head in range(5):
        seen = torch.cat([tokens[:, :2, :head], tokens[:, :2, head + 1 :]], 2)[..., :3]
        weights = layer.head_weights(seen, tokens[:, 2], head)
        assert float(weights.min()) >= 0
        assert torch.allclose(weights.sum(1), torch.ones(100).double())


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_full_rank_heads_with_biases_answer_the_bands(dim: int) -> None:
    layer = build.banded_layer(dim)
    assert layer.shape.layer.heads == 2 * dim**2 + 1
    assert measure(layer, build.BandedNeighbour(dim=dim), 4000).error < 1e-6
    assert banded_error_bound(dim, dim, 1).verdict is BoundVerdict.NOT_APPLICABLE


def test_the_bands_are_what_they_say() -> None:
    task = build.BandedNeighbour(dim=4)
    tokens, answers = task.sample(500, seed=3)
    first, second, query = tokens.double().unbind(1)
    total = torch.zeros(500, 4).double()
    for k, threshold in enumerate(band_thresholds(4)):  # the sum of biased neighbours, one by one
        wins = ((first - threshold * query / query.square().sum(1, keepdim=True)) * query).sum(1)
        wins = wins > (second * query).sum(1)
        total += (-1) ** k * torch.where(wins[:, None], first, second)
    assert torch.allclose(total, answers[:, 0].double(), atol=1e-6)


@pytest.mark.parametrize("length", [1.5, 2.5])
def test_the_masses_of_the_bands_agree_with_quadrature(length: float) -> None:
    dim = 5
    thresholds = band_thresholds(dim) / (np.sqrt(2) * length)
    inside = thresholds[np.abs(thresholds) < 1]
    size = quad(lambda t: (1 - t * t) ** ((dim - 3) / 2), -1, 1)[0]
    order = (dim - 2) / 2
    ends = [-1.0, *inside, 1.0]
    before = int((thresholds <= -1).sum())
    found = band_masses(dim, 7, length)
    for index, (degree, harmonics) in enumerate(((1, 5), (3, 30), (5, 91), (7, 204))):
        scale = eval_gegenbauer(degree, order, 1.0) * size

        def weighted(t: float, degree: int = degree) -> float:
            return float(eval_gegenbauer(degree, order, t) * (1 - t * t) ** ((dim - 3) / 2))

        signs = [-1.0 if (before + k) % 2 == 0 else 1.0 for k in range(len(ends) - 1)]
        parts = [quad(weighted, low, high)[0] for low, high in itertools.pairwise(ends)]
        total = np.dot(signs, parts) / scale
        assert found[index] == pytest.approx(total**2 * harmonics, rel=1e-6, abs=1e-10)


def test_low_rank_is_worse_at_bands_than_at_the_nearest_point() -> None:
    bands = banded_error_bound(8, 1, 16, highest_degree=399).value
    nearest = error_lower_bound(8, 1, 16).value
    assert bands is not None
    assert nearest is not None
    assert nearest < bands <= 0.5
    assert band_masses(8, 1999, 3.0).sum() == pytest.approx(1.0, abs=0.05)


def test_the_nearly_full_layer_refuses_points_that_it_is_not_exact_for() -> None:
    layer = build.nearly_full_rank_layer(4)
    for tokens in (torch.ones(1, 3, 4), torch.full((1, 3, 4), torch.nan)):
        with pytest.raises(InputError, match="two orthogonal points"):
            layer(tokens)


def test_assumption_one_is_checked_on_the_network() -> None:
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=2, heads=2), seed=0)
    found = {each.name: each.holds for each in build.check_network_assumptions(net)}
    assert found["the readout's activation is 1-Lipschitz"] is False  # GELU
    assert found["the value and output maps' entries are at most 1"] is True
    with torch.no_grad():
        net.get_parameter("embed.1.weight").mul_(1e-3)
        net.get_parameter("layers.0.key.weight").mul_(1e3)  # β takes that
        net.get_parameter("layers.0.value.weight").mul_(1e3)
    found = {each.name: each.holds for each in build.check_network_assumptions(net)}
    assert found["the embedded tokens have norm at most 1"] is True
    assert found["the query and key maps' entries are at most 1, but for a factor β"] is True
    assert found["the value and output maps' entries are at most 1"] is False
    with torch.no_grad():
        net.get_parameter("layers.0.query.weight")[0, 0] = torch.nan  # which no β divides away
        net.get_parameter("embed.1.bias").add_(1.0)
    found = {each.name: each.holds for each in build.check_network_assumptions(net)}
    assert found["the embedded tokens have norm at most 1"] is False
    assert found["the query and key maps' entries are at most 1, but for a factor β"] is False


@pytest.mark.parametrize("seed", range(5))
def test_no_layer_beats_the_extraction_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lags, dim, heads, head_dim = 5, 4, int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kernel = rng.standard_normal((lags, dim, dim))
    bound = extraction_bound(kernel, heads, head_dim).value or 0.0
    # Alternating least squares over patterns of any sign, which are more than distributions.
    patterns = rng.standard_normal((lags, heads))
    for _ in range(200):
        maps = np.linalg.lstsq(patterns, kernel.reshape(lags, -1), rcond=None)[0]
        cut = []
        for each in maps.reshape(heads, dim, dim):
            left, sizes, right = np.linalg.svd(each)
            cut.append(((left[:, :head_dim] * sizes[:head_dim]) @ right[:head_dim]).ravel())
        maps = np.array(cut)
        patterns = np.linalg.lstsq(maps.T, kernel.reshape(lags, -1).T, rcond=None)[0].T
    reached = float(np.square(kernel.reshape(lags, -1) - patterns @ maps).sum())
    assert reached >= bound - 1e-9
    if head_dim >= dim:
        assert reached == pytest.approx(bound, rel=1e-3)


def test_distinct_lags_need_a_head_each() -> None:
    kernel = np.random.default_rng(0).standard_normal((4, 8, 8))
    assert extraction_bound(kernel, 3, 8).verdict is BoundVerdict.HOLDS
    assert extraction_bound(kernel, 4, 8).verdict is BoundVerdict.VACUOUS
    wide, narrow = extraction_bound(kernel, 4, 1), extraction_bound(kernel, 4, 8)
    assert wide.value is not None
    assert narrow.value is None
