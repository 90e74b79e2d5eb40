"""A recovery: what it trains, on which text, and what comes of it."""

import copy
from itertools import islice
from typing import Any

import pytest
import torch
from small_models import measured, small_material, small_model
from torch import Tensor

from headwise.pretrained import compress
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.recovery import finetune
from headwise.pretrained.recovery.looks import Best, set_aside
from headwise.pretrained.recovery.matching import InsideMatch
from headwise.pretrained.text.lessons import in_small_steps
from headwise.pretrained.text.written import writes, written


@pytest.mark.parametrize(("family", "keep"), [("bert", 0.3), ("llama", 0.5)])
def test_recovery_brings_the_outputs_closer_and_adds_no_weight(family: str, keep: float) -> None:
    model, material, measurement = measured(family)
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    before = compress(model, keep=keep, **options).evaluation
    after = compress(model, keep=keep, finetune=100, **options).evaluation
    assert after.damage < 0.98 * before.damage
    assert after.parameters == before.parameters


def test_recovery_at_least_halves_what_cutting_heads_did() -> None:
    model, material, measurement = measured("bert")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    options |= {"method": "prune-heads", "keep": 0.5}
    before = compress(model, **options).evaluation.damage
    assert compress(model, finetune=150, **options).evaluation.damage < 0.5 * before


def test_a_training_that_goes_wrong_leaves_the_weights_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, material, measurement = measured("bert")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    before = compress(model, keep=0.5, **options).model.state_dict()
    monkeypatch.setattr(finetune, "_EMBEDDING_RATE", 1e5)
    after = compress(model, keep=0.5, finetune=20, **options).model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_where_a_rate_is_too_high_a_lower_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate far above the usual one: at most a look's steps are lost until it is low enough."""
    model, material, measurement = measured("bert")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    options |= {"method": "prune-heads", "keep": 0.5}
    before = compress(model, **options).evaluation.damage
    monkeypatch.setattr(finetune, "_EMBEDDING_RATE", 0.1)
    assert compress(model, finetune=150, **options).evaluation.damage < 0.5 * before


def test_one_look_that_is_worse_is_waited_for_and_two_in_a_row_are_not() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    best = Best([weight])
    assert best.see(1.0)
    for value, loss, goes_on in ((2.0, 1.2, True), (3.0, 0.9, True), (4.0, 1.0, True)):
        weight.data.fill_(value)
        assert best.see(loss) == goes_on
    assert not best.see(0.95)  # the second in a row
    best.restore()
    assert weight.item() == 3.0
    assert best.see(1.0)  # counted anew
    assert not any(map(Best([weight]).see, (float("nan"), float("inf"))))
    assert not best.see(3.0)


def test_what_is_looked_at_is_not_trained_on_and_all_else_is() -> None:
    batches = [{"input_ids": torch.full((4, 128), n)} for n in range(100)]
    training, aside = set_aside(batches)
    names = [{int(batch["input_ids"][0, 0]) for batch in some} for some in (training, aside)]
    assert not names[0] & names[1]
    assert len(names[0] | names[1]) == 100
    assert sum(batch["input_ids"].numel() for batch in aside) == 4096
    few = batches[:3]
    assert set_aside(few) == (few, few)  # nothing to spare


def test_texts_are_read_in_steps_of_about_512_tokens_and_all_of_them() -> None:
    ids = torch.arange(20 * 100).view(20, 100)
    long = torch.arange(2 * 700).view(2, 700)
    parts = in_small_steps([{"input_ids": ids, "token_type_ids": ids + 1}, {"input_ids": long}])
    assert [len(part["input_ids"]) for part in parts] == [5, 5, 5, 5, 1, 1]
    assert torch.equal(torch.cat([part["input_ids"] for part in parts[:4]]), ids)
    assert all(torch.equal(p["token_type_ids"], p["input_ids"] + 1) for p in parts[:4])
    images = [{"pixel_values": torch.zeros(3, 3, 16, 16)}]
    assert in_small_steps(images) == images


def test_a_recovery_trains_all_but_tables_of_embeddings_and_the_same_way_again() -> None:
    model, material, measurement = measured("llama")

    def recovered(seed: int) -> dict[str, Tensor]:
        result = compress(
            model,
            text=material,
            keep=0.5,
            finetune=40,
            seed=seed,
            measurement=measurement,
            time_it=False,
        )
        return dict(result.model.state_dict())

    first, again, other = recovered(0), recovered(0), recovered(1)
    for name, before in model.state_dict().items():
        if name in first:
            table = "embed_tokens" in name or "lm_head" in name
            assert torch.equal(first[name], before) == table, name
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    assert any(not torch.equal(value, other[name]) for name, value in first.items())


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3", "opt"])
def test_the_original_goes_on_with_given_texts_as_it_predicts(family: str) -> None:
    """With predictions as sharp as these, a draw is what `generate` gives without chance."""
    model = small_model(family)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(1e4)
    given = small_material(model).calibration
    assert writes(objective_for(model), given)
    starts = {tuple(row.tolist()) for batch in given for row in batch["input_ids"]}
    for batch in islice(written(model, given, seed=0), 3):
        for row in batch["input_ids"]:
            begun = max(
                n for n in range(1, 17) if any(tuple(row[:n].tolist()) == s[:n] for s in starts)
            )
            expected = model.generate(
                row[None, :begun],
                max_new_tokens=len(row) - begun,
                min_new_tokens=len(row) - begun,
                do_sample=False,
                pad_token_id=0,
                eos_token_id=None,
            )
            assert torch.equal(expected[0], row)


def test_what_the_original_writes_follows_its_predictions_and_the_seed() -> None:
    model = small_model("llama")
    given = [{"input_ids": torch.full((4, 2), 7)}]

    def texts(seed: int) -> Tensor:
        found = islice(written(model, given, seed=seed), 600)
        return torch.cat([batch["input_ids"] for batch in found])

    first = texts(0)
    assert torch.equal(first, texts(0))
    assert not torch.equal(first, texts(1))
    with torch.no_grad():
        expected = model(torch.tensor([[7]])).logits[0, -1].softmax(-1)
    counts = torch.bincount(first[:, 1], minlength=99) / len(first)
    assert (counts - expected).abs().max() < 0.04


def test_models_that_do_not_go_on_with_what_they_read_write_nothing() -> None:
    for family in ("bert", "bert-masked", "t5", "vit"):
        model = small_model(family)
        assert not writes(objective_for(model), small_material(model).calibration)


@torch.no_grad()
@pytest.mark.parametrize("family", ["llama", "bert", "t5", "vit"])
def test_blocks_are_compared_by_what_the_outputs_feel(family: str) -> None:
    """Twice the damage to a block's output is twice as far; nothing changed is no distance; and a
    direction that outputs do not feel counts next to nothing."""
    model, material, measurement = measured(family)
    changed = copy.deepcopy(model)
    parts = (model, changed, measurement.sites, measurement.objective, material.calibration)
    apart = InsideMatch(*parts, seed=0)
    batch = material.calibration[0]
    assert float(apart(batch)) < 1e-9
    path, root = list(apart.roots.items())[-1]
    felt, directions = torch.linalg.eigh(root @ root.T)

    def moved(direction: Tensor, size: float) -> float:
        def move(_module: Any, _inputs: Any, output: Any) -> Any:
            several = isinstance(output, tuple)
            value = (output[0] if several else output) + size * direction
            return (value, *output[1:]) if several else value

        handle = changed.get_submodule(path).register_forward_hook(move)
        try:
            return float(apart(batch))
        finally:
            handle.remove()

    most = moved(directions[:, -1], 1e-2)
    assert most == pytest.approx(float(felt[-1]) * 1e-4 / 2 / len(apart.roots), rel=1e-2)
    assert moved(directions[:, -1], 2e-2) == pytest.approx(4 * most, rel=1e-2)
    assert moved(directions[:, 0], 1e-2) < most


@torch.no_grad()
@pytest.mark.parametrize("family", ["bert", "vit"])
def test_both_models_run_once_tell_blocks_and_damage(family: str) -> None:
    model, material, measurement = measured(family)
    smaller = compress(
        model, text=material, measurement=measurement, keep=0.5, time_it=False
    ).model.eval()
    objective = measurement.objective
    parts = (model, smaller, measurement.sites, objective, material.calibration)
    inside = InsideMatch(*parts, seed=0)
    batch = material.calibration[0]
    apart, damage = inside.and_damage(batch)
    assert float(apart) == pytest.approx(float(inside(batch)), rel=1e-5)
    compared = objective.compare(model(**batch), smaller(**batch), batch)
    assert float(damage) == pytest.approx(
        float(compared.damage.sum() / compared.units.sum()), rel=1e-4
    )
    assert float(apart) > 0 < float(damage)


def test_a_model_whose_weights_are_frozen_is_recovered_too() -> None:
    model = small_model("llama").requires_grad_(False)
    material = small_material(model)
    result = compress(model, text=material, keep=0.5, finetune=10, time_it=False)
    assert len(result.recovery) == 10
    assert not any(parameter.requires_grad for parameter in model.parameters())
