"""Sums, quantiles and pairs are no retrievals: counting tokens says nothing about heads."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

import headwise
from headwise.advise.probe.counting.extremum import Extremum, examine_extremum
from headwise.advise.probe.counting.invariance import look_at_shorter
from headwise.advise.probe.counting.sensitivity import measure_sensitivity
from headwise.advise.probe.samples.function import TargetFunction

Target = Callable[[np.ndarray], np.ndarray]


def sampler(length: int, token_dim: int = 1) -> Callable[..., np.ndarray]:
    def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal((count, length, token_dim))

    return draw


def examined(target: Target, length: int, token_dim: int = 1) -> Extremum:
    function = TargetFunction(target, sampler(length, token_dim))
    counted = measure_sensitivity(function)
    order = look_at_shorter(function, counted, 0).permutations
    return examine_extremum(function, counted, order, 0)


def hinges(c: float) -> Target:
    return lambda x: np.maximum(x[..., 0] - c, 0).sum(1)


def above(c: float) -> Target:
    return lambda x: (x[..., 0] > c).sum(1).astype(float)


def closest(x: np.ndarray) -> np.ndarray:
    gaps = np.abs(x[:, :, None, 0] - x[:, None, :, 0]) + 1e9 * np.eye(x.shape[1])
    return gaps.min((1, 2))


def neighbour(x: np.ndarray) -> np.ndarray:
    """The value of the token nearest to the first."""
    chosen = np.abs(x[:, 1:, 0] - x[:, :1, 0]).argmin(1)
    return x[np.arange(len(x)), chosen + 1, 1]


NO_EXTREMA: dict[str, tuple[Target, int, int]] = {
    "hinges 1": (hinges(1.0), 24, 1),
    "hinges 1.5": (hinges(1.5), 24, 1),
    "hinges 2": (hinges(2.0), 24, 1),
    "root of a sum": (lambda x: np.sqrt(1 + (np.maximum(x - 1, 0) ** 2).sum((1, 2))), 24, 1),
    "count of 8": (above(0.0), 8, 1),
    "count of 24": (above(0.5), 24, 1),
    "count of 64": (above(0.5), 64, 1),
    "parity": (lambda x: above(0.0)(x) % 2, 8, 1),
    "median": (lambda x: np.median(x[..., 0], 1), 15, 1),
    "second largest": (lambda x: np.sort(x[..., 0], 1)[:, -2], 16, 1),
    "gap": (lambda x: np.diff(np.sort(x[..., 0], 1)[:, -2:], axis=1)[:, 0], 16, 1),
    "smaller maximum": (lambda x: x.max(1).min(1), 20, 2),
    "some positions": (lambda x: x[:, ::4, 0].sum(1), 16, 1),
    "larger half": (lambda x: np.maximum(x[:, :6, 0].sum(1), x[:, 6:, 0].sum(1)), 12, 1),
    "largest third": (lambda x: x[..., 0].reshape(-1, 3, 4).sum(2).max(1), 12, 1),
    "closest pair": (closest, 12, 1),
    "neighbour": (neighbour, 12, 2),
}
EXTREMA: dict[str, tuple[Target, int, int]] = {
    "largest": (lambda x: x[..., 0].max(1), 12, 1),
    "range": (lambda x: np.ptp(x[..., 0], 1), 12, 1),
    "product of four": (lambda x: (2 + x.max(1)).prod(1), 16, 4),
    "chosen value": (lambda x: x[np.arange(len(x)), x[..., 0].argmax(1), 1], 12, 2),
    "first times last": (lambda x: x[:, 0, 0] * x[:, -1, 0], 12, 1),
    "quarters": (lambda x: x[:, :3, 0].max(1) + x[:, 3:6, 0].max(1), 12, 1),
    "halves": (lambda x: x[:, :8, 0].max(1) + x[:, 8:, 0].min(1), 16, 1),
}


@pytest.mark.parametrize("name", NO_EXTREMA)
def test_what_is_no_extremum_is_not_counted(name: str) -> None:
    target, length, token_dim = NO_EXTREMA[name]
    assert not examined(target, length, token_dim).shown
    counted = headwise.probe(target=target, sampler=sampler(length, token_dim), train=False)
    assert counted.heads is None


@pytest.mark.parametrize("name", EXTREMA)
def test_extrema_are_counted(name: str) -> None:
    target, length, token_dim = EXTREMA[name]
    assert examined(target, length, token_dim).shown
    finding = headwise.probe(target=target, sampler=sampler(length, token_dim), train=False)
    assert finding.heads == {"largest": 1, "chosen value": 1, "product of four": 4}.get(name, 2)
    assert finding.confident


def test_a_crowd_shows_that_effects_add_up() -> None:
    found = Extremum({"merge": 0.0}, crowd=24, count=3, noisy=False)
    assert not found.shown
    assert "24 matter, not 3" in str(found.failed)


def test_sums_from_data_need_one_head_or_get_none() -> None:
    draw = sampler(8)
    inputs = draw(5000, (1,))
    options = {"max_heads": 4, "positions": False, "seconds": 600}
    summed = headwise.probe(inputs, hinges(1.0)(inputs), **options)
    assert summed.heads == 1
    counted = headwise.probe(inputs, above(0.0)(inputs), **options)
    assert counted.heads in (1, None)


def test_a_threshold_from_data_is_one_head_or_a_slope() -> None:
    """Counting x > 0.8 of 48: heads sharpen the threshold, gradually, and one is enough."""
    inputs = sampler(48)(2500, (2,))
    options = {"max_heads": 5, "positions": False, "seconds": 600}
    counted = headwise.probe(inputs, above(0.8)(inputs), **options)
    assert counted.heads in (1, None)
    if counted.heads is None:
        errors = counted.errors()
        assert f"1: {errors[1]:.1e}, 2: {errors[2]:.1e}, 3: {errors[3]:.1e}" in counted.sentence


@pytest.mark.parametrize(("levels", "length", "maxima"), [(50, 6, 1), (200, 6, 2), (1000, 12, 3)])
def test_tokens_that_tie_for_a_maximum_are_not_counted_twice(
    levels: int, length: int, maxima: int
) -> None:
    """Of two whole numbers that are the largest, torch gives each half of the derivative."""

    def whole(count: int, seed: tuple[int, ...]) -> torch.Tensor:
        drawn = np.random.default_rng(seed).integers(0, levels, (count, length, maxima))
        return torch.from_numpy(drawn.astype(float))

    for seed in range(3):
        finding = headwise.probe(
            target=lambda x: x.amax(1).sum(1), sampler=whole, train=False, seed=seed
        )
        assert finding.heads in (maxima, None)


def test_units_of_coordinates_and_outputs_do_not_matter() -> None:
    def draw(count: int, seed: tuple[int, ...]) -> torch.Tensor:
        return torch.from_numpy(sampler(16, 2)(count, seed) * [1e3, 1e-3])

    def summed(x: torch.Tensor) -> torch.Tensor:
        return x[..., 0].amax(1) / 1e3 + x[..., 1].amax(1) * 1e3

    def apart(x: np.ndarray) -> np.ndarray:
        return x.max(1)  # outputs whose units differ by a million

    for target in (summed, apart):
        in_torch = target is summed
        finding = headwise.probe(
            target=target,
            sampler=draw if in_torch else lambda *asked: draw(*asked).numpy(),
            train=False,
        )
        assert finding.heads == 2
        assert finding.confident


def test_noise_is_not_taken_for_an_order_of_the_tokens() -> None:
    noise = np.random.default_rng(1)

    def ranges(x: np.ndarray) -> np.ndarray:
        return np.ptp(x, 1).sum(1) + 0.002 * noise.standard_normal(len(x))

    for seed in range(8):
        finding = headwise.probe(target=ranges, sampler=sampler(12, 1), train=False, seed=seed)
        assert finding.heads == 2


def test_labels_of_a_function_are_true_or_false() -> None:
    finding = headwise.probe(
        target=lambda x: x[..., 0].max(1) > 1.0, sampler=sampler(8), max_heads=2, train=False
    )
    assert finding.heads in (1, None)


def _soft(x: np.ndarray) -> np.ndarray:
    return np.log(np.exp(20 * x).sum(1)).sum(1) / 20


def _diameter(x: np.ndarray) -> np.ndarray:
    return np.sqrt(((x[:, :, None] - x[:, None]) ** 2).sum(-1)).max((1, 2))


@pytest.mark.parametrize("target", [_soft, pytest.param(_diameter, marks=pytest.mark.slow)])
def test_noise_hides_neither_sums_nor_pairs(target: Target) -> None:
    """Two soft maxima were counted as three, the two most distant tokens as two features."""
    rng = np.random.default_rng(1)

    def noisy(x: np.ndarray) -> np.ndarray:
        return target(x) + 0.0025 * rng.standard_normal(len(x))

    finding = headwise.probe(target=noisy, sampler=sampler(36, 2), train=False, seed=1)
    assert finding.heads is None


def test_one_token_that_decides_a_label_is_one_head() -> None:
    """The label does not change with the largest token wherever the next one has the same."""

    def label(x: np.ndarray) -> np.ndarray:
        return x.max(1).argmax(1)

    finding = headwise.probe(target=label, sampler=sampler(20, 3), train=False)
    assert (finding.heads, finding.confident) == (1, True)


def test_a_label_whose_tokens_are_not_all_seen_is_not_counted() -> None:
    """Is the largest x where the largest y is? One token matters where it is, none elsewhere."""

    def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
        x, fresh = np.random.default_rng(seed).standard_normal((2, count, 16))
        return np.stack([x, 0.9 * x + 0.44 * fresh], 2)

    def label(x: np.ndarray) -> np.ndarray:
        return x[..., 0].argmax(1) == x[..., 1].argmax(1)

    assert headwise.probe(target=label, sampler=draw, train=False).heads is None
