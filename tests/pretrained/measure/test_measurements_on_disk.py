"""A stored measurement is taken where nothing that matters changed; a stopped one goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import small_material, small_model

from headwise.pretrained import Budget, apply_plan, make_plan, measure_model
from headwise.pretrained.measure import store


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "measurements").glob("*"))


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_stored_measurement_is_the_fresh_one(family: str, tmp_path: Path) -> None:
    model = small_model(family)
    material = small_material(model)
    fresh = measure_model(model, material, cache=False)
    assert kept(tmp_path) == []
    first = measure_model(model, material)
    (file,) = kept(tmp_path)
    written = file.stat().st_mtime_ns
    again = measure_model(model, material)
    assert len(kept(tmp_path)) == 1
    assert file.read_bytes()
    assert written <= file.stat().st_mtime_ns
    plans = [make_plan(each, Budget(0.6)) for each in (fresh, first, again)]
    assert plans[0] == plans[1] == plans[2]
    states = [
        apply_plan(model, each, plan).state_dict()
        for each, plan in zip((fresh, first, again), plans, strict=True)
    ]
    for state in states[1:]:
        assert all(torch.equal(state[name], value) for name, value in states[0].items())


def test_another_model_text_seed_or_pool_is_measured_anew(tmp_path: Path) -> None:
    model = small_model("bert")
    material = small_material(model)
    measure_model(model, material)
    measure_model(model, material, seed=1)
    measure_model(model, material, pool="cls")
    measure_model(model, small_material(model, seed=1))
    with torch.no_grad():
        model.encoder.layer[1].output.dense.weight[0, 0] += 1e-3
    measure_model(model, material)
    assert len(kept(tmp_path)) == 5


def test_a_damaged_file_is_measured_again(tmp_path: Path) -> None:
    model = small_model("bert")
    material = small_material(model)
    plan = make_plan(measure_model(model, material), Budget(0.6))
    (file,) = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:100])
    assert make_plan(measure_model(model, material), Budget(0.6)) == plan


@pytest.mark.parametrize("family", ["llama", "t5"])  # t5: two lengths, two counts of tokens
def test_a_stopped_measurement_goes_on_from_what_it_had(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model(family)
    material = small_material(model)
    whole = measure_model(model, material, cache=False)
    monkeypatch.setattr(store, "_SECONDS", 0.0)
    seen: list[float] = []

    def stopping(fraction: float, doing: str) -> None:
        seen.append(fraction)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_model(model, material, on_progress=stopping)
    assert any("sums" in path.name for path in kept(tmp_path))
    later: list[float] = []
    rest = measure_model(model, material, on_progress=lambda done, doing: later.append(done))
    assert later[0] > seen[3]
    assert [path for path in kept(tmp_path) if "sums" in path.name] == []
    for one, two in zip(whole.curves, rest.curves, strict=True):
        np.testing.assert_array_equal(one.removal, two.removal)
        np.testing.assert_array_equal(one.values, two.values)
    assert make_plan(whole, Budget(0.6)) == make_plan(rest, Budget(0.6))


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_little_memory_takes_more_passes_and_gives_the_same(family: str) -> None:
    model = small_model(family)
    material = small_material(model)
    options: dict[str, Any] = {"cache": False}
    one = measure_model(model, material, **options)
    several = measure_model(model, material, memory=1e-6, **options)
    for first, second in zip(one.curves, several.curves, strict=True):
        np.testing.assert_allclose(first.removal, second.removal, rtol=1e-5)


def test_what_was_stopped_or_killed_does_not_pile_up(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "measurements"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"{number:032}.sums-1-of-1.safetensors").touch()
        (folder / f".writing-{number}.safetensors").touch()
    model = small_model("bert")
    measure_model(model, small_material(model))
    assert len([path for path in kept(tmp_path) if "sums" in path.name]) == 12
    assert len([path for path in folder.iterdir() if path.name.startswith(".writing-")]) == 12
