"""Families that share an adapter: each is described exactly, cut, saved, opened and generated from.

One small measurement each; `test_families` tries the adapters themselves in more ways.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from more_models import COUSINS
from small_models import far_from_zero, small_material, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Budget, Material, apply_plan, compress, make_plan, measure_model
from headwise.pretrained.adapters import FAMILIES, attention_sites, require_supported
from headwise.pretrained.adapters.refused import REFUSED
from headwise.pretrained.plan.counts import original_parameters


def outputs(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        found = model(**batch)
    if "text_embeds" in found:  # two towers
        return torch.cat([found["text_embeds"], found["image_embeds"]])
    result: torch.Tensor = found[0]
    return result


def few(model: Any) -> Material:
    whole = small_material(model)
    return Material(whole.calibration[:2], whole.held_out[:1], "random inputs")


def generated(model: Any, batch: dict[str, torch.Tensor], cache: bool) -> torch.Tensor:
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    options |= {"forced_eos_token_id": None, "use_cache": cache}
    options["attention_mask"] = torch.ones_like(batch["input_ids"])
    made: torch.Tensor = model.generate(**batch, **options)
    return made


@torch.no_grad()
def one_after_the_others(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """What the last token gives, the others being in the cache."""
    past = model(input_ids=ids[:, :-1], use_cache=True).past_key_values
    found: torch.Tensor = model(input_ids=ids[:, -1:], past_key_values=past).logits[:, -1]
    return found


@pytest.mark.parametrize("name", sorted(COUSINS))
def test_a_family_is_described_cut_saved_and_opened(name: str, tmp_path: Path) -> None:
    model = small_model(name)
    material = few(model)
    measurement = measure_model(model, material)
    batch = material.held_out[0]
    expected = outputs(model, batch)
    same = apply_plan(model, measurement, make_plan(measurement, Budget(1.0)))
    # Tiny Gemma's own rounding is 1e-4, of outputs up to 14: 1e-5 is of the largest output.
    atol = 1e-5 * float(expected.abs().max().clamp(min=1))
    torch.testing.assert_close(outputs(same, batch), expected, rtol=1e-4, atol=atol)

    plan = make_plan(measurement, Budget(0.5))
    half = compress(model, text=material, plan=plan, measurement=measurement, time_it=False)
    kept = half.evaluation.attention_parameters.ratio
    assert 0.35 < kept < 0.52  # norms and tables of biases stay, and are many in so small a model
    again = headwise.from_pretrained(half.save(tmp_path / "half"))
    assert type(again) is type(model)
    assert torch.equal(outputs(again, batch), outputs(half.model, batch))

    if FAMILIES[model.config.model_type].uniform is not None:
        uniform = compress(
            model, text=material, keep=0.6, uniform=True, measurement=measurement, time_it=False
        )
        uniform.model.save_pretrained(tmp_path / "stock")
        stock = type(model).from_pretrained(tmp_path / "stock")
        torch.testing.assert_close(outputs(stock, batch), outputs(uniform.model, batch))

    narrow = apply_plan(model, measurement, make_plan(measurement, Budget(0.5, "cache")))
    start = {key: ids[:2, :11] for key, ids in batch.items()}
    if model.can_generate():
        assert torch.equal(generated(narrow, start, True), generated(narrow, start, False))
        if not model.config.is_encoder_decoder:
            last = one_after_the_others(narrow, start["input_ids"])
            whole = outputs(narrow, start)[:, -1]
            torch.testing.assert_close(last, whole, rtol=1e-4, atol=atol)
    expected = outputs(narrow, batch)
    narrow.set_attn_implementation("eager")
    torch.testing.assert_close(outputs(narrow, batch), expected, rtol=1e-4, atol=atol)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("gemma", "GemmaForSequenceClassification"),
        ("starcoder2", "Starcoder2ForTokenClassification"),
        ("bloom", "BloomForTokenClassification"),
        ("gpt-neo", "GPTNeoForSequenceClassification"),
        ("falcon", "FalconForQuestionAnswering"),
        ("mbart", "MBartForCausalLM"),
        ("umt5", "UMT5EncoderModel"),
    ],
)
def test_other_heads_of_a_family_are_cut_as_well(family: str, name: str) -> None:
    config, _, options = COUSINS[family]
    torch.manual_seed(2)
    made = getattr(transformers, name)(getattr(transformers, config)(**options))
    model = far_from_zero(made.eval())
    model.config.pad_token_id = 0
    whole = few(model)
    parts = [
        [{"input_ids": b["input_ids"]} for b in p] for p in (whole.calibration, whole.held_out)
    ]
    material = Material(parts[0], parts[1], "random inputs")
    measurement = measure_model(model, material, cache=False)
    result = compress(
        model, text=material, measurement=measurement, keep=0.5, time_it=False, cache=False
    )
    layers, pair = measurement.reductions, result.evaluation.attention_parameters
    # Tables of positions count as attention, and stay.
    beside = pair.original - sum(original_parameters(layer.weights) for layer in layers)
    assert 0.35 < (pair.compressed - beside) / (pair.original - beside) <= 0.5


@pytest.mark.parametrize(
    ("family", "changes", "why"),
    [
        ("cohere", {"use_qk_norm": True}, "each head is normalised with weights of its own"),
        (
            "exaone4",
            {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8},
            "norm on queries and keys",
        ),
        ("falcon", {"alibi": True}, "Falcon with ALiBi is not supported"),
        ("gptj", {"n_embd": 12}, "RoPE on 4 of 3 coordinates does not come in pairs"),
        ("olmo", {"clip_qkv": 3.0}, "clips what its projections put out at ±3.0"),
        ("esm", {"add_cross_attention": True, "is_decoder": True}, "of ESM encoders are supported"),
    ],
)
def test_what_a_family_may_have_and_no_site_can_say_is_refused(
    family: str, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        attention_sites(small_model(family, **changes))


def test_families_that_cannot_be_described_are_refused_with_the_reason() -> None:
    assert not REFUSED.keys() & FAMILIES.keys()
    for model_type, why in REFUSED.items():
        config = transformers.AutoConfig.for_model(model_type)
        with pytest.raises(InputError) as refusal:
            require_supported(config)
        assert str(refusal.value).endswith(why)
