"""Every family: nothing changes when all is kept; what is cut is what a dense reference says."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import FAMILIES, shrunk, small_material, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import (
    Budget,
    apply_plan,
    attention_sites,
    compress,
    make_plan,
    measure_model,
)
from headwise.pretrained._evaluate import attention_parameters
from headwise.pretrained.plan.counts import parameters


def outputs(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(**batch)[0]
    return result


def test_with_everything_kept_outputs_equal_the_originals(family: str) -> None:
    model = small_model(family)
    material = small_material(model)
    measurement = measure_model(model, material)
    same = apply_plan(model, measurement, make_plan(measurement, Budget(1.0)))
    for batch in material.held_out:
        expected = outputs(model, batch)
        torch.testing.assert_close(outputs(same, batch), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("counts", ["parameters", "cache"])
def test_a_saved_model_comes_back_bit_for_bit(family: str, counts: str, tmp_path: Path) -> None:
    model = small_model(family)
    material = small_material(model)
    result = shrunk(model, material, counts, 0.55)
    result.save(tmp_path / "one")
    again = headwise.from_pretrained(tmp_path / "one")
    assert type(again) is type(model)
    again.save_pretrained(tmp_path / "two")
    twice = headwise.from_pretrained(tmp_path / "two")
    for batch in material.held_out:
        expected = outputs(result.model, batch)
        assert torch.equal(outputs(again, batch), expected)
        assert torch.equal(outputs(twice, batch), expected)


def test_the_budget_is_kept_and_counted_as_the_model_counts(family: str) -> None:
    model = small_model(family)
    material = small_material(model)
    measurement = measure_model(model, material)
    whole = attention_parameters(model, measurement.sites)
    for fraction in (0.9, 0.6, 0.3):
        plan = make_plan(measurement, Budget(fraction))
        smaller = apply_plan(model, measurement, plan)
        real = attention_parameters(smaller, measurement.sites)
        predicted = sum(
            parameters(site, shape, layer.weights)
            for site, shape, layer in zip(
                measurement.sites, plan.layers, measurement.reductions, strict=True
            )
        )
        assert real == predicted
        assert 0.8 * fraction * whole < real <= fraction * whole


def test_the_original_is_left_as_it_was(family: str) -> None:
    model = small_model(family)
    before = copy.deepcopy(model.state_dict())
    compress(model, text=small_material(model), keep=0.5, time_it=False)
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_attention_implementations_agree_on_the_compressed_model(family: str) -> None:
    model = small_model(family)
    material = small_material(model)
    smaller = shrunk(model, material, "cache", 0.6).model
    expected = outputs(smaller, material.held_out[0])
    smaller.set_attn_implementation("eager")
    torch.testing.assert_close(
        outputs(smaller, material.held_out[0]), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral", "gpt2"])
@pytest.mark.parametrize("counts", ["parameters", "cache"])
def test_generation_with_a_cache_equals_generation_without(name: str, counts: str) -> None:
    model = small_model(name)
    smaller = shrunk(model, small_material(model), counts, 0.6).model
    prompt = torch.randint(4, 99, (2, 7), generator=torch.Generator().manual_seed(3))
    options = {"max_new_tokens": 12, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options |= {"pad_token_id": 0, "eos_token_id": None}
    cached = smaller.generate(prompt, use_cache=True, **options)
    assert torch.equal(cached, smaller.generate(prompt, use_cache=False, **options))


def test_padding_does_not_reach_the_other_tokens() -> None:
    model = small_model("bert")
    smaller = compress(model, text=small_material(model), keep=0.6, time_it=False).model
    ids = torch.randint(4, 99, (1, 10), generator=torch.Generator().manual_seed(4))
    padded = torch.cat([ids, torch.zeros(1, 5, dtype=torch.long)], dim=1)
    mask = torch.tensor([[1] * 10 + [0] * 5])
    alone = outputs(smaller, {"input_ids": ids})
    among = outputs(smaller, {"input_ids": padded, "attention_mask": mask})
    torch.testing.assert_close(among[:, :10], alone, rtol=1e-4, atol=1e-5)


def test_the_cache_holds_as_many_numbers_as_the_plan_says() -> None:
    model = small_model("llama")
    result = shrunk(model, small_material(model), "cache", 0.5)
    ids = torch.randint(4, 99, (1, 9), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        cache = result.model(input_ids=ids, use_cache=True).past_key_values
    held = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    counted = result.evaluation.cache_bytes_per_token
    assert counted is not None
    assert held == 9 * counted.compressed / 4


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "vit"])
def test_half_precision_and_compilation_run(name: str) -> None:
    model = small_model(name)
    material = small_material(model)
    smaller = shrunk(model, material, "cache", 0.6).model
    expected = outputs(smaller, material.held_out[0])
    compiled = torch.compile(smaller, backend="eager")
    torch.testing.assert_close(outputs(compiled, material.held_out[0]), expected)
    half = copy.deepcopy(smaller).to(torch.bfloat16)
    batch = {
        key: value.bfloat16() if value.is_floating_point() else value
        for key, value in material.held_out[0].items()
    }
    error = (outputs(half, batch).float() - expected).norm() / expected.norm()
    assert error < 0.1


def test_an_unknown_architecture_is_named_and_the_known_ones_are_listed() -> None:
    config = transformers.Qwen3Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=16, vocab_size=20, head_dim=8,
    )  # fmt: skip
    model = transformers.Qwen3ForCausalLM(config)
    with pytest.raises(InputError, match=r"qwen3.*llama, mistral, qwen2"):
        attention_sites(model)


def test_every_family_is_tested() -> None:
    tested = {getattr(transformers, config)().model_type for config, _, _ in FAMILIES.values()}
    assert set(headwise.pretrained.FAMILIES) - tested == {"xlm-roberta"}
