"""Input that nobody should give to the probe gets a sentence, or the answer that it deserves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headwise
from headwise.advise.probe.descent import transition
from headwise.advise.probe.samples.function import TargetFunction
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.samples.prepare import prepare
from headwise.core.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 6, 2))
Y = X[..., 0].max(1)


def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 8, 2))


def largest(x: Any) -> Any:
    return x[..., 0].max(1)


BAD_DATA: dict[str, tuple[tuple[Any, Any], str]] = {
    "token dimensions differ": (([np.ones((2, 3)), np.ones((2, 2))], [1.0, 2.0]), "same token_dim"),
    "tokens differ": (([[[1, 2], [3]], [[1, 2], [3, 4]]], [1.0, 2.0]), "differ in length"),
    "a number for a sequence": (([1.0, np.ones((2, 2))], [1.0, 2.0]), "single value"),
    "an empty sequence": (([X[0], X[1, :0]], [1.0, 2.0]), "at least one token"),
    "no length": ((X[:, :0], Y), "at least one of each"),
    "no samples": ((X[:0], Y[:0]), "at least one of each"),
    "strings": (([["a", "b"], ["c", "d"]], [1.0, 2.0]), "inputs are numbers"),
    "strings of lengths": (([["a", "b"], ["c"]], [1.0, 2.0]), "are numbers"),
    "objects": ((np.array([[{}]], dtype=object), [1.0]), "types dict; numbers are accepted"),
    "complex": ((X + 1j, Y), "not complex128"),
    "NaN": ((np.where(X > 2, np.nan, X), Y), "the inputs hold NaN"),
    "infinite targets": ((X, np.where(Y > 2, np.inf, Y)), "the targets hold NaN or infinite"),
    "NaN labels": ((X, np.where(Y > 2, np.nan, 1.0)), "the targets hold NaN"),
    "missing": ((X, np.array(["a", None] * 300, dtype=object)), "300 of the targets are missing"),
    "mixed": ((X, np.array(["a", 1.0] * 300, dtype=object)), "types float, str"),
    "too few targets": ((X, Y[:5]), "600 sequences but targets of shape"),
    "no outputs": ((X, np.ones((600, 0))), "600 sequences but targets of shape"),
    "a dictionary": (({"a": 1}, {"b": 2}), "single value"),
    "an outlier": ((np.where(X[0, 0, 0] == X, 1e30, X), Y), "coordinate 0 .* single precision"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_unusable_data_get_a_sentence(case: str) -> None:
    data, sentence = BAD_DATA[case]
    with pytest.raises(InputError, match=sentence):
        headwise.probe(*data)


@pytest.mark.parametrize("entry", [np.nan, 0.5, "no", 2])
def test_a_mask_is_true_or_false(entry: Any) -> None:
    with pytest.raises(InputError, match="true or 1 where a token is real"):
        headwise.probe(X, Y, mask=np.full((600, 6), entry))
    with pytest.raises(InputError, match="the mask has shape"):
        headwise.probe(X, Y, mask=np.ones(600))


BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "half a head": ({"max_heads": 2.5}, "max_heads is 2.5; it is a whole number, from 2 to 64"),
    "text": ({"max_heads": "3"}, "max_heads is '3'"),
    "a truth": ({"max_heads": True}, "max_heads is True"),
    "no workers": ({"jobs": 0}, "jobs is 0; it is a whole number, at least 1"),
    "half a worker": ({"jobs": 1.5}, "jobs is 1.5"),
    "workers in words": ({"jobs": "two"}, "jobs is 'two'"),
    "a seed between": ({"seed": 1.5}, "seed is 1.5"),
    "a seed below": ({"seed": -1}, "seed is -1"),
    "time in words": ({"seconds": "3"}, "seconds is '3'; a probe takes some time"),
    "no time": ({"seconds": float("nan")}, "some time"),
    "positions in words": ({"positions": "yes"}, "positions is 'yes'; it is True, False or None"),
    "a state nowhere": ({"state": "/no/such/folder/state.json"}, "there is no folder"),
    "a state that is a number": ({"state": 3}, "state names a file"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_options_that_make_no_sense_get_a_sentence(case: str) -> None:
    options, sentence = BAD_OPTIONS[case]
    with pytest.raises(InputError, match=sentence):
        headwise.probe(X, Y, **options)
    with pytest.raises(InputError, match=sentence):
        headwise.probe(target=largest, sampler=draw, **options)


BAD_FUNCTIONS: dict[str, tuple[Any, Any, str]] = {
    "a sampler of one argument": (largest, lambda count: draw(count, (0,)), "the sampler failed"),
    "a sampler of strings": (largest, lambda count, seed: [["a"]] * count, "values of type"),
    "too few sequences": (largest, lambda count, seed: X[:5], "was asked for 512 sequences"),
    "huge sequences": (largest, lambda c, s: 1e300 * draw(c, s), "choose another unit"),
    "tiny sequences": (largest, lambda c, s: 1e-310 * draw(c, s), "choose another unit"),
    "a target that fails": (lambda x: x.nothing, draw, "the target failed on a batch of shape"),
    "a target of strings": (lambda x: ["a"] * len(x), draw, "expected one number"),
    "a target of one number": (lambda x: 3.0, draw, "expected one number"),
    "a target of nothing": (lambda x: None, draw, "expected one number"),
    "a target of NaN": (lambda x: np.nan * x[:, 0, 0], draw, "the target returned NaN"),
}


@pytest.mark.parametrize("case", BAD_FUNCTIONS)
def test_functions_that_cannot_be_asked_get_a_sentence(case: str) -> None:
    target, sampler, sentence = BAD_FUNCTIONS[case]
    with pytest.raises(InputError, match=sentence):
        headwise.probe(target=target, sampler=sampler)


def test_nothing_and_too_much_are_told_apart() -> None:
    with pytest.raises(InputError, match="either data or a function; there is neither"):
        headwise.probe()
    with pytest.raises(InputError, match="either data or a function; not both"):
        headwise.probe(X, Y, target=largest, sampler=draw)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ((np.tile(X[:5], (400, 1, 1)), np.tile(Y[:5], 400)), "2000 sequences only 5 are different"),
        ((np.ones((600, 6, 2)), Y), "all sequences are the same"),
        ((X[:1], Y[:1]), "1 sample is too few"),
    ],
)
def test_too_few_different_sequences_get_no_number(data: Any, sentence: str) -> None:
    finding = headwise.probe(*data)
    assert finding.heads is None
    assert sentence in finding.sentence
    assert "at least 500" in finding.settled_by


def standard(inputs: Any, targets: Any = Y) -> tuple[np.ndarray, np.ndarray]:
    data = prepare(Samples.of(inputs, targets), seed=0, positions=False)
    return data.train.inputs.numpy(), data.train.targets.numpy()


@pytest.mark.parametrize("scale", [1e-310, 1e-40, 1e-12, 1e30, 1e300])
def test_the_unit_of_inputs_and_targets_does_not_matter(scale: float) -> None:
    tokens, values = standard(X)
    for found, wanted in zip(standard(scale * X, scale * Y), (tokens, values), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-4)
    for found, wanted in zip(standard(1e9 + X, 1e9 + Y), (tokens, values), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_every_kind_of_number_is_read() -> None:
    tokens, _ = standard(X)
    for inputs in (
        torch.from_numpy(X).bfloat16(),
        torch.from_numpy(X).half(),
        torch.from_numpy(X).requires_grad_(),
        torch.from_numpy(X).to_sparse(),
        X.astype(object),
        X.tolist(),
        list(X),
        [torch.from_numpy(row) for row in X],
    ):
        np.testing.assert_allclose(standard(inputs)[0], tokens, atol=0.05)
    whole = Samples.of(X > 0, Y > 1)
    assert whole.kind == "classification"


def test_equal_sequences_are_held_out_together() -> None:
    rng = np.random.default_rng(1)
    again = rng.integers(600, size=4000)
    samples = Samples.of(X[again], Y[again])
    assert samples.distinct == len(np.unique(again))
    data = prepare(samples, seed=0, positions=False)
    held = {row.tobytes() for row in data.holdout.inputs.numpy()}
    assert held.isdisjoint(row.tobytes() for row in data.train.inputs.numpy())
    assert 300 < len(data.holdout.inputs) < 500
    assert len(data.holdout.inputs) + len(data.train.inputs) == 4000


@pytest.mark.parametrize("scale", [1e-310, 1.0, 1e300])
def test_the_unit_of_a_function_does_not_matter(scale: float) -> None:
    finding = headwise.probe(target=lambda x: scale * largest(x), sampler=draw)
    assert finding.heads == 1


def test_labels_of_a_function_stay_labels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for target in (lambda x: largest(x) > 1, lambda x: x[..., 0].argmax(1)):
        function = TargetFunction(target, draw)
        inputs = function.draw(1000, (1,))
        given = function.as_given(function(inputs))
        assert Samples.of(inputs, given).kind == "classification"
    numbers = TargetFunction(largest, draw)
    assert Samples.of(inputs, numbers.as_given(numbers(inputs))).kind == "regression"
    for name in ("WIDE_STEPS", "TUNING_STEPS", "SCREENING_STEPS"):
        monkeypatch.setattr(transition, name, 20)
    monkeypatch.setattr(transition, "MORE_SEEDS", ())
    finding = headwise.probe(
        target=lambda x: largest(x) > 1, sampler=draw, train=True, max_heads=2, jobs=1
    )
    assert finding.sentence
