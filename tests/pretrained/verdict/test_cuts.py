"""Cuts that were tried are kept on disk, and nothing is found otherwise for that."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import Measured, measured

from headwise.pretrained import Budget, compress, make_plan
from headwise.pretrained.trial import tried


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
