"""Where the order matters: linear forms of the sequence are one head, comparisons two layers."""

import numpy as np
import pytest
from descents import shorten

import headwise
from headwise.advise.probe.counting.sensitivity import Sensitivity
from headwise.advise.probe.zoo import draw_of_class


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descents of a tenth: heads learn little, and the controls are asked all the same."""
    shorten(monkeypatch, WIDE_STEPS=800, TUNING_STEPS=200, _FULL_STEPS=800)


def test_the_largest_of_window_sums_is_one_head_that_training_does_not_find(short: None) -> None:
    inputs = np.random.default_rng(0).standard_normal((12_000, 16, 1))
    sums = np.stack([part.sum((1, 2)) for part in np.split(inputs, 4, 1)], 1)
    found = headwise.probe(inputs, sums.max(1), positions=True, max_heads=3, seconds=600)
    assert found.heads == 1
    assert found.layers == 1
    assert "linear forms of the sequence" in found.sentence


def test_the_highest_point_of_a_walk_has_too_many_forms(short: None) -> None:
    walk = np.random.default_rng(0).standard_normal((12_000, 32, 1)).cumsum(1)
    steps = np.diff(walk, axis=1, prepend=0.0)
    found = headwise.probe(steps, walk.max((1, 2)), positions=True, max_heads=3, seconds=600)
    assert found.heads is None


@pytest.mark.parametrize(
    ("name", "index"),
    [("neighbours of first", 2), pytest.param("induction", 2, marks=pytest.mark.slow)],
)
def test_comparing_tokens_takes_two_layers_and_the_rank_is_known(
    short: None, name: str, index: int
) -> None:
    task = draw_of_class(name, 5, index)
    rank = {"neighbours of first": 2, "induction": 4}[name]  # dimensions, symbols
    assert f"{rank} " in task.about
    data = task.sample(12_000, (3, 3))
    found = headwise.probe(data.inputs, data.targets, positions=True, max_heads=2, seconds=600)
    assert (found.heads, found.layers) == (None, 2)
    assert "More than one layer" in str(found)
    assert found.head_dim is not None
    assert found.head_dim.query_key == rank
    low, high = found.head_dim.query_key_interval
    assert low <= rank <= high


def test_noise_is_not_called_deep(short: None) -> None:
    rng = np.random.default_rng(0)
    inputs, targets = rng.standard_normal((4000, 8, 2)), rng.standard_normal(4000)
    found = headwise.probe(inputs, targets, positions=True, max_heads=2, seconds=600)
    assert (found.heads, found.layers, found.head_dim) == (None, None, None)


def test_a_count_that_still_grows_is_no_number() -> None:
    def counted(*counts: int) -> Sensitivity:
        return Sensitivity(max(counts), np.array(counts), 40, "gradients", 0.0)

    assert counted(*[6] * 100, *[5] * 156).saturated
    assert not counted(*[13] * 8, *[12] * 50, *[9] * 1990).saturated
    assert not counted(*[3] * 4, *[2] * 40).saturated
    rare = [*[13] * 15, *[12] * 100, *[11] * 141]  # one more would be seen at 1 % of the inputs
    assert not counted(*rare).saturated
    assert counted(*rare * 4).saturated


def test_a_function_that_is_undefined_elsewhere_is_still_probed(short: None) -> None:
    """The token that the first names: no step, and no copy of another token, makes sense there."""

    def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return np.concatenate([rng.integers(1, 12, (count, 1, 1)), rng.random((count, 11, 1))], 1)

    def named(inputs: np.ndarray) -> np.ndarray:
        place = inputs[:, 0, 0]
        if (place != place.round()).any() or (place < 1).any():
            raise ValueError("no such place")
        return inputs[np.arange(len(inputs)), place.astype(int), 0]

    found = headwise.probe(target=named, sampler=draw, max_heads=2, seconds=600)
    assert found.heads is None
