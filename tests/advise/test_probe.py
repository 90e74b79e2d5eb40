"""The probe on data alone: it finds the number of heads, or says why it does not."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from descents import shorten

import headwise
from headwise.advise.probe import Finding
from headwise.core.errors import InputError
from headwise.tasks import sum_of_maxima


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the training: for what does not depend on how well networks learn."""
    shorten(monkeypatch, WIDE_STEPS=300, TUNING_STEPS=100, SCREENING_STEPS=200)


def maxima(count: int, intrinsic_dim: int, length: int = 8) -> tuple[np.ndarray, np.ndarray]:
    task = sum_of_maxima(length, intrinsic_dim, token_dim=2, seed=3)
    inputs, targets = task.sample(count, seed=1)
    return inputs.numpy(), targets.numpy()


@pytest.fixture(scope="module")
def found() -> Finding:
    return headwise.probe(*maxima(6000, 2), max_heads=4, seconds=600, positions=False)


def test_it_finds_the_intrinsic_dimension(found: Finding) -> None:
    assert found.heads == 2
    assert found.interval == (2, 2)
    assert found.confident
    assert "from 1 to 2 heads" in found.sentence
    assert "2 dimensions a head are enough" in str(found)
    assert found.head_dim is not None
    assert (found.head_dim.query_key, found.head_dim.value) == (1, 1)  # affine maxima
    errors = found.errors()
    assert errors[1] > 10 * errors[2]
    assert errors[2] < 0.01
    tokens = found.evidence.query("method == 'surrogate' and heads == 2 and head_dim == 2")
    assert tokens["value"].median() == 2
    assert found.precision is not None
    assert 3e-4 <= found.precision < 2 * max(3e-4, errors[2])
    assert "are not seen" in found.sentence


def test_a_finding_is_data(found: Finding, tmp_path: Path) -> None:
    data = json.loads(found.to_json())
    assert data["heads"] == 2
    assert data["confident"] is True
    assert set(data["evidence"][0]) == set(found.evidence.columns)
    found.figure(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_counting_and_training_are_joined(short: None) -> None:
    task = sum_of_maxima(16, 1, token_dim=2)

    def of_any_length(inputs: torch.Tensor) -> torch.Tensor:
        return task.features(inputs).amax(1).sum(-1)

    finding = headwise.probe(target=of_any_length, sampler=task.sample, train=True, max_heads=3)
    methods = {
        "sensitivity",
        "transition",
        "ablation",
        "surrogate",
        "head dimension",
        "length",
    }
    assert set(finding.evidence["method"]) == methods
    assert finding.heads == 1
    lengths = finding.evidence.query("method == 'length' and heads == 1")["length"]
    assert sorted(lengths) == [4, 8, 16]
    assert "Reversal with the length" in str(finding)


def test_labels_padding_and_lists_are_data_too() -> None:
    inputs, _ = maxima(6000, 1)
    lengths = np.random.default_rng(0).integers(4, 9, len(inputs))
    sequences = [row[:length] for row, length in zip(inputs, lengths, strict=True)]
    direction = np.array(sum_of_maxima(8, 1, token_dim=2, seed=3).features.weights[0])
    best = np.array([(row @ direction).max() for row in sequences])
    labels = np.where(best > np.median(best), "large", "small")
    finding = headwise.probe(sequences, labels, max_heads=3, seconds=600, positions=False)
    assert finding.heads == 1
    assert finding.errors()[1] < 0.2


def test_noise_gets_no_number(short: None) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((2000, 6, 2))
    finding = headwise.probe(inputs, rng.standard_normal(2000), max_heads=3)
    assert finding.heads is None
    assert finding.settled_by
    assert 3 in finding.errors()  # the partial evidence is there
    assert "No answer" in str(finding)


def test_more_features_than_heads_get_no_number() -> None:
    finding = headwise.probe(*maxima(4000, 3, length=12), max_heads=2, seconds=600)
    assert finding.heads is None
    assert "still falls at 2 heads" in finding.sentence
    assert finding.head_dim is None
    assert "max_heads" in finding.settled_by


@pytest.mark.parametrize("targets", [np.full(600, 3.0), np.full(600, "a")])
def test_a_constant_target_gets_no_number(targets: np.ndarray) -> None:
    finding = headwise.probe(np.random.default_rng(0).random((600, 4, 2)), targets)
    assert finding.heads is None
    assert "constant" in finding.sentence


def test_fifty_samples_get_no_number() -> None:
    finding = headwise.probe(*maxima(50, 2))
    assert finding.heads is None
    assert "50 samples" in finding.sentence


def test_repeated_sequences_are_one_sample() -> None:
    inputs, targets = maxima(5, 2)
    finding = headwise.probe(np.tile(inputs, (400, 1, 1)), np.tile(targets, 400))
    assert finding.heads is None
    assert "only 5 are different" in finding.sentence


def test_without_time_there_is_no_number() -> None:
    finding = headwise.probe(*maxima(1000, 2), seconds=1e-6, positions=False)
    assert finding.heads is None
    assert "more seconds" in finding.settled_by


def test_a_stopped_probe_goes_on(short: None, tmp_path: Path) -> None:
    data, state = maxima(1000, 2), tmp_path / "state.json"
    options = {"max_heads": 3, "positions": False}
    whole = headwise.probe(*data, **options)

    def stop(fraction: float, doing: str) -> None:
        if state.exists() and "removal_costs" in state.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headwise.probe(*data, **options, state=state, jobs=1, on_progress=stop)
    (kept,) = (k for k in json.loads(state.read_text())["probes"].values() if k)
    assert 0 < len(kept) < 4  # not all of three descents and a control
    for _ in range(2):  # the first time the rest is trained, the second time nothing
        resumed = headwise.probe(*data, **options, state=state)
        assert resumed.to_data()["evidence"] == whole.to_data()["evidence"]
    other = headwise.probe(*maxima(1000, 1), **options, state=state)
    assert other.to_data()["evidence"] != whole.to_data()["evidence"]


def test_a_file_that_is_no_state_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(InputError, match="not the state of a probe"):
        headwise.probe(*maxima(600, 1), state=tmp_path / "a.json")


GOOD = np.zeros((10, 4, 2))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"inputs": GOOD}, "give inputs and targets"),
        ({}, "either data or a function"),
        ({"inputs": GOOD, "targets": np.ones(9)}, "10 sequences but targets of shape"),
        ({"inputs": GOOD[0, 0], "targets": np.ones(2)}, "shape"),
        ({"inputs": GOOD + np.nan, "targets": np.ones(10)}, "NaN or infinite"),
        ({"inputs": GOOD, "targets": np.full(10, np.inf)}, "NaN or infinite"),
        ({"inputs": GOOD.astype(str), "targets": np.ones(10)}, "inputs are numbers"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": np.ones((10, 3))}, "the mask has shape"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": np.zeros((10, 4))}, "without a token"),
        ({"inputs": GOOD, "targets": np.ones(10), "max_heads": 1}, "from 2 to 64"),
        ({"inputs": GOOD, "targets": np.ones(10), "seconds": 0}, "some time"),
        ({"inputs": GOOD, "targets": np.ones(10), "kind": "ranking"}, "kind is"),
        ({"inputs": [np.ones((2, 3)), np.ones((3, 2))], "targets": np.ones(2)}, "same token_dim"),
        ({"inputs": [np.ones((2, 3)), np.ones((2, 2))], "targets": np.ones(2)}, "same token_dim"),
        ({"inputs": [[[1, 2], [3]], [[1, 2]]], "targets": np.ones(2)}, "rows differ in length"),
        ({"inputs": [None, None], "targets": np.ones(2)}, "a single value"),
        ({"inputs": GOOD, "targets": np.ones(10), "max_heads": 2.5}, "a whole number"),
        ({"inputs": GOOD, "targets": np.ones(10), "jobs": 0}, "jobs is 0"),
        ({"inputs": GOOD, "targets": np.ones(10), "jobs": 1.5}, "jobs is 1.5"),
        ({"inputs": GOOD, "targets": np.ones(10), "seconds": float("nan")}, "some time"),
        ({"inputs": GOOD, "targets": np.ones(10), "positions": "yes"}, "positions is 'yes'"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": GOOD[..., 0].astype(str)}, "true or"),
    ],
)
def test_unusable_data_get_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        headwise.probe(**arguments)
