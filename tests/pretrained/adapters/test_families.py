"""Every family: nothing changes when all is kept; what is cut is what a dense reference says."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import MODELS, measured, shrunk, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Budget, apply_plan, attention_sites, compress, make_plan
from headwise.pretrained._evaluate import attention_parameters
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.plan.counts import original_parameters, parameters

DECODERS = ["gemma2", "gemma3", "gpt2", "gpt-neox", "llama", "mistral", "mixtral", "olmo2", "opt"]
DECODERS += ["phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm"]
PAIRS = ["bart", "t5", "whisper"]


def outputs(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(**batch)[0]
    return result


def half_of(family: str, counts: str = "parameters") -> Any:
    model, material, measurement = measured(family)
    return shrunk(model, material, counts, 0.5, measurement).model


def test_with_everything_kept_outputs_equal_the_originals(family: str) -> None:
    model, material, measurement = measured(family)
    same = apply_plan(model, measurement, make_plan(measurement, Budget(1.0)))
    for batch in material.held_out:
        expected = outputs(model, batch)
        torch.testing.assert_close(outputs(same, batch), expected, rtol=1e-4, atol=1e-5)


def test_what_is_measured_is_the_attention_that_the_model_has(family: str) -> None:
    model, material, measurement = measured(family)
    real: dict[str, torch.Tensor] = {}
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")
    sites, batch = measurement.sites, material.held_out[0]
    handles = [
        model.get_submodule(site.output).register_forward_pre_hook(
            lambda module, inputs, path=site.path: real.update({path: inputs[0]})
        )
        for site in sites
    ]
    seen: dict[str, torch.Tensor] = {}

    def look(layer: int, observed: Observed) -> None:
        context = observed.attend(observed.scores().softmax(-1))
        seen[sites[layer].path] = context.transpose(1, 2).flatten(2)

    observe(model, sites, [batch], look)
    for handle in handles:
        handle.remove()
    assert seen.keys() == real.keys() == {site.path for site in sites}
    for path, context in seen.items():
        torch.testing.assert_close(context, real[path], rtol=1e-4, atol=1e-5)


def test_a_causal_model_shows_its_first_tokens_as_if_they_were_all(family: str) -> None:
    model, material, measurement = measured(family)
    sites, batch = measurement.sites, material.held_out[0]
    if not all(site.causal and not site.cross for site in sites):
        return
    shorter = {name: value[:, :7] for name, value in batch.items()}
    cut: dict[int, Observed] = {}
    short: dict[int, Observed] = {}
    observe(model, sites, [batch], lambda layer, seen: cut.update({layer: seen.first(7)}))
    observe(model, sites, [shorter], short.__setitem__)
    for layer, expected in short.items():
        found = cut[layer].attend(cut[layer].scores().softmax(-1))
        real = expected.attend(expected.scores().softmax(-1))
        torch.testing.assert_close(found, real, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(cut[layer].context, expected.context, rtol=1e-4, atol=1e-5)


def test_a_saved_model_comes_back_bit_for_bit(family: str, tmp_path: Path) -> None:
    model, material, measurement = measured(family)
    result = shrunk(model, material, "cache", 0.55, measurement)
    again = headwise.from_pretrained(result.save(tmp_path / "one"))
    assert type(again) is type(model)
    for batch in material.held_out:
        assert torch.equal(outputs(again, batch), outputs(result.model, batch))


@pytest.mark.parametrize("name", ["llama", "qwen3", "olmo2", "t5"])
def test_a_model_saved_again_by_transformers_comes_back(name: str, tmp_path: Path) -> None:
    model, material, measurement = measured(name)
    result = shrunk(model, material, "parameters", 0.55, measurement)
    headwise.from_pretrained(result.save(tmp_path / "one")).save_pretrained(tmp_path / "two")
    twice = headwise.from_pretrained(tmp_path / "two")
    batch = material.held_out[0]
    assert torch.equal(outputs(twice, batch), outputs(result.model, batch))


def test_the_budget_is_kept_and_counted_as_the_model_counts(family: str) -> None:
    model, _, measurement = measured(family)
    sites, layers = measurement.sites, measurement.reductions
    whole = sum(original_parameters(layer.weights) for layer in layers)
    beside = attention_parameters(model, sites) - whole  # norms, tables of biases: not reduced
    for fraction in (0.9, 0.5):
        plan = make_plan(measurement, Budget(fraction))
        smaller = apply_plan(model, measurement, plan)
        real = attention_parameters(smaller, sites) - beside
        parts = zip(sites, plan.layers, layers, strict=True)
        assert real == sum(parameters(site, shape, layer.weights) for site, shape, layer in parts)
        assert 0.8 * fraction * whole < real <= fraction * whole


def test_the_original_is_left_as_it_was(family: str) -> None:
    model, material, measurement = measured(family)
    before = copy.deepcopy(model.state_dict())
    trained = [parameter.requires_grad for parameter in model.parameters()]  # not all of Whisper's
    compress(model, text=material, keep=0.5, measurement=measurement, time_it=False)
    after = model.state_dict()
    assert trained == [parameter.requires_grad for parameter in model.parameters()]
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_attention_implementations_agree_on_the_compressed_model(family: str) -> None:
    batch = measured(family).material.held_out[0]
    smaller = half_of(family, "cache")
    expected = outputs(smaller, batch)
    smaller.set_attn_implementation("eager")
    torch.testing.assert_close(outputs(smaller, batch), expected, rtol=1e-4, atol=1e-5)


def test_all_attention_weights_are_returned(family: str) -> None:
    model, material, measurement = measured(family)
    plan = make_plan(measurement, Budget(0.4, "cache"))
    original = copy.deepcopy(model)
    if family not in ("llama", "bert", "t5"):  # these three: of the default implementation as well
        original.set_attn_implementation("eager")
    outputs(original, material.held_out[0] | {"output_attentions": True})  # hooks are there already
    smaller = apply_plan(original, measurement, plan)
    with torch.no_grad():
        given = smaller(**material.held_out[0], output_attentions=True)
    towers = [given] if family != "clip" else [given.text_model_output, given.vision_model_output]
    kinds = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    found = [w for tower in towers for kind in kinds for w in tower.get(kind) or ()]
    shapes = sorted(sum(len(group.heads) for group in layer.groups) for layer in plan.layers)
    assert sorted(weights.shape[1] for weights in found) == shapes
    for weights in found:
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_weights_of_what_is_kept_whole_are_the_originals(family: str) -> None:
    model, material, measurement = measured(family)
    batch = material.held_out[0]
    original = copy.deepcopy(model)
    original.set_attn_implementation("eager")
    same = apply_plan(original, measurement, make_plan(measurement, Budget(1.0)))
    with torch.no_grad():
        expected, given = (m(**batch, output_attentions=True) for m in (original, same))
    for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        pairs = zip(expected.get(name) or (), given.get(name) or (), strict=True)
        for first, second in pairs:
            torch.testing.assert_close(second, first, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DECODERS)
def test_generation_with_a_cache_equals_generation_without(name: str) -> None:
    smaller = half_of(name, "cache")
    prompt = torch.randint(4, 98, (2, 7), generator=torch.Generator().manual_seed(3))
    options = {"max_new_tokens": 12, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options |= {"pad_token_id": 0, "eos_token_id": None}
    cached = smaller.generate(prompt, use_cache=True, **options)
    assert torch.equal(cached, smaller.generate(prompt, use_cache=False, **options))


@pytest.mark.parametrize("name", PAIRS)
def test_a_decoder_with_an_encoder_generates_alike_with_and_without_a_cache(name: str) -> None:
    smaller = half_of(name, "cache")
    batch = dict(measured(name).material.held_out[0])
    ids = batch.pop("decoder_input_ids")[:, :3]
    options = {"max_new_tokens": 9, "do_sample": False, "eos_token_id": None}
    options |= {"forced_eos_token_id": None, "pad_token_id": 0}
    cached = smaller.generate(**batch, decoder_input_ids=ids, use_cache=True, **options)
    plain = smaller.generate(**batch, decoder_input_ids=ids, use_cache=False, **options)
    assert torch.equal(cached, plain)


@pytest.mark.parametrize("name", ["bert", "modernbert", "mpnet", "electra"])
def test_padding_does_not_reach_the_other_tokens(name: str) -> None:
    smaller = half_of(name)
    ids = torch.randint(4, 98, (1, 10), generator=torch.Generator().manual_seed(4))
    padded = torch.cat([ids, torch.zeros(1, 5, dtype=torch.long)], dim=1)
    mask = torch.tensor([[1] * 10 + [0] * 5])
    alone = outputs(smaller, {"input_ids": ids})
    among = outputs(smaller, {"input_ids": padded, "attention_mask": mask})
    torch.testing.assert_close(among[:, :10], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "qwen3", "olmo2", "gpt-neox"])
def test_the_cache_holds_as_many_numbers_as_the_plan_says(name: str) -> None:
    model, material, measurement = measured(name)
    result = shrunk(model, material, "cache", 0.5, measurement)
    ids = torch.randint(4, 98, (1, 9), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        cache = result.model(input_ids=ids, use_cache=True).past_key_values
    held = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    counted = result.evaluation.cache_bytes_per_token
    assert counted is not None
    assert held == 9 * counted.compressed / 4


@pytest.mark.parametrize("name", ["llama", "bert", "qwen3"])
def test_half_precision_and_compilation_run(name: str) -> None:
    material = measured(name).material
    smaller = half_of(name, "cache")
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


def test_an_unknown_architecture_is_named_with_what_adding_it_takes() -> None:
    config = transformers.DiffLlamaConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=16, vocab_size=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = transformers.DiffLlamaForCausalLM(config)
    with pytest.raises(InputError, match=r"register_family\('diffllama'.*llama, m2m_100, marian"):
        attention_sites(model)


@pytest.mark.parametrize("name", ["phi", "stablelm"])
def test_a_norm_before_partial_rope_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="qk_layernorm is not supported"):
        attention_sites(small_model(name, qk_layernorm=True))


def test_every_family_is_tested() -> None:
    tested = {getattr(transformers, config)().model_type for config, _, _ in MODELS.values()}
    assert set(headwise.pretrained.FAMILIES) - tested == {"xlm-roberta"}
