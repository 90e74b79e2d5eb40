"""The zoo: its tasks are what they say, and their heads suffice by construction."""

from math import ceil, log2

import numpy as np
import pytest
import torch

from headwise.advise.probe.zoo import CLASSES, REFUSE, ZooTask, draw_of_class, draw_task
from headwise.advise.probe.zoo.draw import FAMILIES
from headwise.core.errors import InputError


def values(task: ZooTask, inputs: np.ndarray) -> np.ndarray:
    return task.value(torch.from_numpy(inputs)).numpy()


def drawn(task: ZooTask, count: int = 256, seed: int = 3) -> np.ndarray:
    return task.tokens(np.random.default_rng(seed), count)


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_gives_usable_data_that_only_the_seed_decides(name: str) -> None:
    for index in range(2):
        task = draw_of_class(name, 5, index)
        inputs, targets, mask = task.sample(200, (1, 2))
        again = draw_of_class(name, 5, index).sample(200, (1, 2))
        assert np.array_equal(targets, again.targets)
        assert all(np.array_equal(a, b) for a, b in zip(inputs, again.inputs, strict=True))
        other = task.sample(200, (1, 3))
        assert not all(np.array_equal(a, b) for a, b in zip(inputs, other.inputs, strict=True))
        assert len(np.unique(targets, axis=0)) > 1 or name == "rare events"
        if targets.dtype.kind == "f":
            assert np.isfinite(targets).all()
        assert mask is None or mask.shape == inputs.shape[:2]
        assert task.acceptable
        assert all(each == REFUSE or each >= 1 for each in task.acceptable)
        assert str(task).startswith(name)


@pytest.mark.parametrize("name", CLASSES)
def test_function_and_data_are_the_same_task(name: str) -> None:
    task = draw_of_class(name, 6, 0)
    if task.target is None or task.sampler is None:
        return
    inputs = task.sampler(50, (4,))
    assert isinstance(inputs, np.ndarray) == task.in_numpy
    found = np.asarray(task.target(inputs))
    assert (found.dtype.kind == "i") == task.labels
    wanted = values(task, np.asarray(inputs))
    np.testing.assert_allclose(found, wanted, atol=0.06 * max(1.0, float(np.abs(wanted).std())))


def test_every_class_proves_its_number() -> None:
    for family in FAMILIES:
        for each in family.CLASSES:
            assert each.__doc__ is not None
            assert len(each.__doc__) > 40, each.__name__


def test_draws_are_of_all_kinds_and_retrieval_is_frequent() -> None:
    names = [draw_task(8, index).name for index in range(120)]
    assert len(set(names)) > 45
    assert 6 < names.count("retrieval") < 36
    with pytest.raises(InputError, match="not negative"):
        draw_task(-1, 0)
    with pytest.raises(InputError, match="there is no class 'unicorns'; there are retrieval"):
        draw_of_class("unicorns", 0, 0)


EXTREMA = [
    "unequal maxima",
    "ranges",
    "largest norms",
    "maxima of maxima",
    "ratios of extrema",
    "flagged maxima",
]
EXTREMA += ["switched maxima", "too many maxima", "fading maxima", "maxima by halves"]
EXTREMA += ["brightest patch", "contrast of patches", "one position", "last flagged"]


@pytest.mark.parametrize("name", EXTREMA)
def test_as_many_tokens_matter_at_once_as_there_are_extrema(name: str) -> None:
    task = draw_of_class(name, 9, 0)
    leaf = torch.from_numpy(drawn(task)).requires_grad_()
    (slope,) = torch.autograd.grad(task.value(leaf).sum(), leaf)
    influential = (slope.norm(dim=-1) > 1e-9).sum(1)
    (heads,) = task.acceptable - {REFUSE}
    assert int(influential.max()) == heads


def test_one_maximum_is_right_only_to_a_precision_that_hides_the_other() -> None:
    task = draw_of_class("unequal maxima", 9, 0)
    weight = float(task.about.partition("and ")[2].partition(",")[0])
    inputs = drawn(task, 20_000)
    share = (weight * inputs[..., 1].max(1)).var() / values(task, inputs).var()
    assert not task.is_right(1)
    assert not task.is_right(1, 0.8 * share)
    assert task.is_right(1, 1.3 * share)
    assert task.is_right(2, 1.3 * share)
    assert not task.is_right(3, 1.3 * share)


AVERAGES = ["means", "hinge sums", "soft counts", "hard counts", "box counts", "clear counts"]


@pytest.mark.parametrize("name", AVERAGES)
def test_one_average_gives_sums_and_counts(name: str) -> None:
    """A head of many ramps with constant scores, and a linear readout."""
    task = draw_of_class(name, 10, 1)
    inputs = drawn(task, 2000)
    directions = [inputs[..., 0]]
    if name == "means":  # along a direction that is not known here
        directions = [
            inputs @ d for d in np.random.default_rng(0).standard_normal((24, inputs.shape[2]))
        ]
    knots = np.linspace(-3.5, 3.5, 91 if len(directions) == 1 else 9)
    ramps = np.concatenate([np.maximum(d[..., None] - knots, 0).mean(1) for d in directions], 1)
    features = np.concatenate([ramps, np.ones((len(inputs), 1))], 1)
    targets = values(task, inputs).astype(float)
    weights = np.linalg.lstsq(features[:1500], targets[:1500], rcond=1e-10)[0]
    error = ((features[1500:] @ weights - targets[1500:]) ** 2).mean() / targets.var()
    assert error < 0.05


def test_pairs_in_appearance_are_averages() -> None:
    task = draw_of_class("pair energies", 1, 0)
    x = drawn(task, 20)[..., 0]
    k = float(task.about.partition("cos(")[2].partition("(")[0])
    pairs = np.cos(k * (x[:, :, None] - x[:, None])).mean((1, 2))
    np.testing.assert_allclose(values(task, drawn(task, 20)), pairs, atol=0.02)  # k is rounded


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def test_two_absorbing_heads_do_what_seems_to_need_three() -> None:
    task = draw_of_class("gated by first", 2, 0)
    x = drawn(task)
    positive, first = x[:, :1, 0] > 0, np.arange(x.shape[1]) == 0
    outputs = []
    for feature, absorbed in ((0, ~positive), (1, positive)):
        scores = np.where(first, np.where(absorbed, 1e6, -1e6), 1e4 * x[..., feature])
        outputs.append(
            (
                softmax(scores)[..., None] * np.stack([x[..., feature], first + 0 * x[..., 0]], 2)
            ).sum(1)
        )
    found = np.where(outputs[0][:, 1] < 0.5, outputs[0][:, 0], outputs[1][:, 0])
    np.testing.assert_allclose(found, values(task, x), atol=1e-3)


def test_one_head_tells_the_coordinate_of_the_largest_entry() -> None:
    task = draw_of_class("largest coordinate", 2, 0)
    x = drawn(task)
    chosen = (softmax(1e6 * x.max(2))[..., None] * np.eye(x.shape[2])[x.argmax(2)]).sum(1)
    assert np.array_equal(chosen.argmax(1), values(task, x))


def test_a_softmax_weighted_mean_is_a_head() -> None:
    task = draw_of_class("softmax means", 2, 0)
    beta, x = float(task.about.partition("β ")[2].partition(",")[0]), drawn(task)
    head = (softmax(beta * x[..., 0]) * x[..., 1]).sum(1)
    np.testing.assert_allclose(head, values(task, x), atol=0.02)


def test_the_second_largest_is_the_best_of_the_smaller_maxima_by_bits() -> None:
    task = draw_of_class("second largest", 2, 0)
    x = drawn(task)[..., 0]
    bits = [(np.arange(x.shape[1]) >> bit) & 1 for bit in range(ceil(log2(x.shape[1])))]
    halves = [[np.where(b == side, x, -np.inf).max(1) for side in (0, 1)] for b in bits]
    found = np.max([np.minimum(*pair) for pair in halves], 0)
    np.testing.assert_allclose(found, values(task, drawn(task)))


@pytest.mark.parametrize("name", ["symbol counts", "symbol entropies", "distinct symbols"])
def test_frequencies_are_all_that_symbols_need(name: str) -> None:
    task = draw_of_class(name, 2, 0)
    x = drawn(task, 3000)
    found: dict[bytes, float] = {}
    for key, value in zip(x.mean(1).round(9), values(task, x), strict=True):
        assert found.setdefault(key.tobytes(), value) == pytest.approx(value)


@pytest.mark.parametrize("name", ["padded", "listed", "padded sums"])
def test_padding_is_no_part_of_the_task(name: str) -> None:
    task = draw_of_class(name, 3, 1)
    inputs, targets, mask = task.sample(40, (5,))
    rows = inputs if mask is None else [row[keep] for row, keep in zip(inputs, mask, strict=True)]
    alone = [float(values(task, np.asarray(row, float)[None])[0]) for row in rows]
    np.testing.assert_allclose(alone, targets, rtol=1e-4, atol=1e-4)
    assert len({len(row) for row in rows}) > 1


def test_a_shuffle_changes_what_depends_on_the_order_and_nothing_else() -> None:
    orderless = {"extrema", "averages", "thresholds", "mixtures", "symbols"}
    for family in FAMILIES:
        kind = family.__name__.rpartition(".")[2]
        for each in family.CLASSES:
            task = draw_of_class(each.__name__.replace("_", " "), 12, 0)
            x = drawn(task, 50)
            shuffled = x[:, np.random.default_rng(1).permutation(x.shape[1])]
            same = np.allclose(values(task, x), values(task, shuffled), atol=1e-9)
            if kind in orderless:
                assert same, task
            elif kind == "positions":
                assert not same, task
