"""Cuts that were tried are kept on disk, and nothing is found otherwise for that."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import Measured, measured

from headwise.pretrained import Budget, compress, make_plan
from headwise.pretrained.trial import tried
from headwise.pretrained.verdict.cuts import _Trial


def curves(subject: Measured, model: Any, *, cache: bool, keep: float = 0.5) -> np.ndarray:
    """What is known of values after trying."""
    _, material, measurement = subject
    plan = make_plan(measurement, Budget(keep))
    known = tried(model, measurement, plan, material.calibration, cache=cache)
    return np.concatenate([curve for layer in known.curves for curve in layer.values])


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_cuts_are_tried_once(family: str) -> None:
    subject = measured(family)
    model = copy.deepcopy(subject.model)
    runs: list[int] = []
    model.get_submodule(subject.measurement.sites[-1].path).register_forward_hook(
        lambda *_: runs.append(1)
    )
    first = curves(subject, model, cache=True)
    many = len(runs)
    np.testing.assert_array_equal(curves(subject, model, cache=True), first)
    assert len(runs) - many < many / 4
    np.testing.assert_array_equal(curves(subject, model, cache=False), first)
    curves(subject, model, cache=True, keep=0.6)
    assert len(runs) > 2 * many


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_order_of_sizes_changes_nothing(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, material, measurement = measured(family)
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    for order in ((0.75, 0.5), (0.5, 0.75)):
        monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / str(order)))
        for keep in order:
            found = compress(model, keep=keep, **options)
            fresh = compress(model, keep=keep, cache=False, **options)
            assert found.plan == fresh.plan
            assert found.evaluation.to_data() == fresh.evaluation.to_data()


def test_a_second_size_tries_no_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, material, measurement = measured("bert")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    compress(model, keep=0.75, **options)
    fresh = compress(model, keep=0.5, cache=False, **options)
    monkeypatch.delattr("headwise.pretrained.trial._by_input")
    tries: list[int] = []
    sums = _Trial.sums
    monkeypatch.setattr(_Trial, "sums", lambda *cut: tries.append(1) or sums(*cut))
    assert compress(model, keep=0.5, **options).plan == fresh.plan
    assert tries == [1]  # to see that it still does what it did


@pytest.mark.parametrize("kind", ["trial", "plans"])
def test_a_damaged_file_is_not_believed(kind: str, tmp_path: Path) -> None:
    model, material, measurement = measured("bert")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    found = compress(model, keep=0.5, **options).plan
    (path,) = (tmp_path / "cache" / "measurements").glob(f"*.{kind}.safetensors")
    whole = path.read_bytes()
    for size in (0, 50, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert compress(model, keep=0.5, **options).plan == found
        assert path.read_bytes() == whole


def test_a_model_that_does_otherwise_is_tried_again() -> None:
    """Hooks are not in the weights that the key is made of."""
    subject = measured("llama")
    plain = curves(subject, subject.model, cache=True)
    hooked = copy.deepcopy(subject.model)
    hooked.model.layers[-1].mlp.register_forward_hook(lambda _module, _inputs, y: 2 * y)
    found = curves(subject, hooked, cache=True)
    assert not np.array_equal(found, plain)
    np.testing.assert_array_equal(found, curves(subject, hooked, cache=False))


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    subject = measured("llama")
    found = curves(subject, subject.model, cache=True)
    (path,) = (tmp_path / "cache" / "measurements").glob("*.trial.safetensors")
    path.write_bytes(path.read_bytes()[:50])
    np.testing.assert_array_equal(curves(subject, subject.model, cache=True), found)
    assert path.stat().st_size > 50


def test_nothing_is_kept_without_a_cache(tmp_path: Path) -> None:
    model, material, _ = measured("bert")
    compress(model, text=material, keep=0.5, cache=False)
    assert not (tmp_path / "cache").exists()
