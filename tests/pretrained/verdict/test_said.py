"""What the original says is kept on disk, and nothing is said otherwise for that."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import Measured, measured, small_model

from headwise.pretrained import Budget, apply_plan, compress, evaluate, make_plan
from headwise.pretrained.verdict import said


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "measurements").glob("*.outputs.safetensors"))


def judged(subject: Measured, model: Any, *, cache: bool, keep: float = 0.5) -> dict[str, Any]:
    """The verdict on a smaller model, by the original `model`."""
    _, material, measurement = subject
    plan = make_plan(measurement, Budget(keep))
    smaller = apply_plan(model, measurement, plan)
    sites, objective = measurement.sites, measurement.objective
    options: dict[str, Any] = {"time_it": False, "cache": cache}
    found = evaluate(model, smaller, sites, plan, objective, material.samples, **options)
    return found.to_data()


@pytest.mark.parametrize("family", ["llama", "bert", "t5"])
def test_a_second_size_is_what_it_is_without_a_cache(family: str, tmp_path: Path) -> None:
    model, material, _ = measured(family)
    options: dict[str, Any] = {"text": material, "time_it": False}
    compress(model, keep=0.75, **options)
    before = {path: path.stat().st_size for path in kept(tmp_path)}
    assert before
    second = compress(model, keep=0.5, **options)
    assert {path: path.stat().st_size for path in kept(tmp_path)} == before
    fresh = compress(model, keep=0.5, cache=False, **options)
    assert second.plan == fresh.plan
    assert second.evaluation.to_data() == fresh.evaluation.to_data()
    weights = fresh.model.state_dict()
    for name, weight in second.model.state_dict().items():
        assert torch.equal(weight, weights[name])


@pytest.mark.parametrize(("family", "inside"), [("llama", "mlp"), ("mpnet", "intermediate")])
def test_a_second_verdict_runs_the_originals_blocks_for_one_batch_a_text(
    family: str, inside: str
) -> None:
    subject = measured(family)
    model = copy.deepcopy(subject.model)
    runs: list[str] = []
    for name, module in model.named_modules():
        if name.endswith(f".0.{inside}"):
            module.register_forward_hook(lambda *_, name=name: runs.append(name))
    first: list[str] = []
    again: list[str] = []
    for counts, keep in ((first, 0.75), (again, 0.5)):
        runs.clear()
        judged(subject, model, cache=True, keep=keep)
        counts += runs  # the smaller model's among them, which is a copy
    samples = subject.material.samples
    batches = sum(len(sample.batches) for sample in samples)
    assert (len(first), len(again)) == (2 * batches, batches + len(samples))


def test_an_original_that_says_otherwise_is_asked_again() -> None:
    """Hooks are not in the weights that the key is made of."""
    subject = measured("llama")
    plain = judged(subject, subject.model, cache=True)
    hooked = copy.deepcopy(subject.model)
    hooked.model.layers[-1].mlp.register_forward_hook(lambda _module, _inputs, y: 2 * y)
    found = judged(subject, hooked, cache=True)
    assert found != plain
    assert found == judged(subject, hooked, cache=False)


def test_a_model_that_does_not_run_without_its_blocks_is_run_whole(tmp_path: Path) -> None:
    subject = measured("llama")
    model = copy.deepcopy(subject.model)
    told: list[int] = []
    model.model.layers[0].mlp.register_forward_hook(lambda *_: told.append(1))
    model.model.norm.register_forward_pre_hook(lambda *_: told.clear() if told.pop() else None)
    assert judged(subject, model, cache=True) == judged(subject, subject.model, cache=False)
    assert kept(tmp_path) == []


def test_another_model_or_text_is_another_file(tmp_path: Path) -> None:
    subject = measured("bert")
    judged(subject, subject.model, cache=True)
    count = len(kept(tmp_path))
    assert count == len(subject.material.samples)
    other = copy.deepcopy(subject.model)
    with torch.no_grad():
        other.encoder.layer[0].output.dense.weight[0, 0] += 1e-3
    judged(subject, other, cache=True)
    assert len(kept(tmp_path)) == 2 * count


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    subject = measured("llama")
    found = judged(subject, subject.model, cache=True)
    for path in kept(tmp_path):
        path.write_bytes(path.read_bytes()[:100])
    assert judged(subject, subject.model, cache=True) == found
    assert all(path.stat().st_size > 100 for path in kept(tmp_path))


def test_what_would_take_too_much_room_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = measured("llama")
    found = judged(subject, subject.model, cache=False)
    monkeypatch.setattr(said, "_BYTES", 10)
    assert judged(subject, subject.model, cache=True) == found
    assert kept(tmp_path) == []


def test_what_was_said_does_not_pile_up(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "measurements"
    folder.mkdir(parents=True)
    for number in range(50):
        (folder / f"{number:032}.outputs.safetensors").touch()
    subject = measured("llama")
    judged(subject, subject.model, cache=True)
    assert len(kept(tmp_path)) == 24


def test_every_family_is_kept(family: str, tmp_path: Path) -> None:
    model, material = small_model(family), measured(family).material
    subject = Measured(model, material, measured(family).measurement)
    judged(subject, model, cache=True)
    assert len(kept(tmp_path)) == len(material.samples)
