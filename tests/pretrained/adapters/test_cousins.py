"""Families that share an adapter: each is described exactly, cut, saved, opened and generated from.

One small measurement each; `test_families` tries the adapters themselves in more ways.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from more_models import COUSINS
from small_models import small_material, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Budget, Material, apply_plan, compress, make_plan, measure_model
from headwise.pretrained.adapters import FAMILIES
from headwise.pretrained.adapters.refused import REFUSED


def outputs(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        found = model(**batch)
    if "text_embeds" in found:  # two towers
        return torch.cat([found["text_embeds"], found["image_embeds"]])
    result: torch.Tensor = found[0]
    return result


def few(model: Any) -> Material:
    whole = small_material(model)
    return Material(whole.calibration[:3], whole.held_out[:1], "random inputs")


def generated(model: Any, batch: dict[str, torch.Tensor], cache: bool) -> torch.Tensor:
    options = {"max_new_tokens": 9, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    options |= {"forced_eos_token_id": None, "use_cache": cache}
    options["attention_mask"] = torch.ones_like(batch["input_ids"])
    made: torch.Tensor = model.generate(**batch, **options)
    return made


@pytest.mark.parametrize("name", sorted(COUSINS))
def test_a_family_is_described_cut_saved_and_opened(name: str, tmp_path: Path) -> None:
    model = small_model(name)
    material = few(model)
    measurement = measure_model(model, material)
    batch = material.held_out[0]
    expected = outputs(model, batch)
    same = apply_plan(model, measurement, make_plan(measurement, Budget(1.0)))
    torch.testing.assert_close(outputs(same, batch), expected, rtol=1e-4, atol=1e-5)

    counts = "cache" if model.can_generate() else "parameters"
    plan = make_plan(measurement, Budget(0.5, counts))
    half = compress(model, text=material, plan=plan, measurement=measurement, time_it=False)
    kept = half.evaluation.attention_parameters.ratio
    assert 0.35 < kept <= 0.5 if counts == "parameters" else kept < 0.75
    again = headwise.from_pretrained(half.save(tmp_path / "half"))
    assert type(again) is type(model)
    assert torch.equal(outputs(again, batch), outputs(half.model, batch))
    again.set_attn_implementation("eager")
    torch.testing.assert_close(
        outputs(again, batch), outputs(half.model, batch), rtol=1e-4, atol=1e-5
    )
    if model.can_generate():
        start = {key: ids[:2, :11] for key, ids in batch.items()}
        assert torch.equal(generated(half.model, start, True), generated(half.model, start, False))
