"""A model in half precision on a CPU: computed in float32, judged and written in its own."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import far_from_zero, small_material, small_model, word_tokenizer
from torch.nn import functional

import headwise
from headwise.core import memory
from headwise.core.errors import InputError
from headwise.pretrained import Material, compress
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.model.mode import widened
from headwise.pretrained.verdict.precision import in_own_precision

HALF = [torch.float16, torch.bfloat16]


def _seen(outputs: Any) -> torch.Tensor:
    return outputs[0].float().log_softmax(-1)[:, :-1]


def _damage(original: Any, compressed: Any, batches: list[dict[str, torch.Tensor]]) -> float:
    """Kullback–Leibler divergence a token, written anew."""
    total, tokens = 0.0, 0
    for batch in batches:
        with torch.no_grad():
            p, q = _seen(original(**batch)), _seen(compressed(**batch))
        total += float(functional.kl_div(q, p, log_target=True, reduction="sum"))
        tokens += p[..., 0].numel()
    return total / tokens


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_the_verdict_is_about_what_is_written(
    dtype: torch.dtype, uniform: bool, tmp_path: Path
) -> None:
    """Opened again in float32, the two checkpoints differ by just what was reported."""
    small_model("llama").to(dtype).save_pretrained(tmp_path / "half")
    material = small_material(small_model("llama"))
    result = compress(
        str(tmp_path / "half"),
        text=material,
        tokenizer=word_tokenizer(),
        keep=0.7,
        uniform=uniform,
        out=tmp_path / "out",
        cache=False,
    )
    again = headwise.from_pretrained(tmp_path / "out")
    assert {parameter.dtype for parameter in again.parameters()} == {dtype}
    buffers = [dict(model.named_buffers()) for model in (again, result.model)]
    assert {name: each.dtype for name, each in buffers[0].items()} == {
        name: each.dtype for name, each in buffers[1].items()
    }
    batch = material.held_out[0]
    with torch.no_grad():
        assert torch.equal(again(**batch)[0], result.model(**batch)[0])
    wide = [
        headwise.from_pretrained(tmp_path / name, dtype=torch.float32) for name in ("half", "out")
    ]
    own = _damage(*wide, material.held_out)
    assert result.evaluation.damage == pytest.approx(own, rel=1e-6)
    assert result.evaluation.cache_bytes_per_token is not None
    assert result.evaluation.cache_bytes_per_token.original == 2 * 2 * 2 * 3 * 8
    assert all("in float32" in name for name in result.evaluation.latency_ms)


@pytest.mark.parametrize("dtype", HALF)
def test_a_loaded_model_stays_as_it_is(dtype: torch.dtype) -> None:
    model = small_model("whisper").to(dtype)
    model.model.decoder.layer_norm.float()  # some checkpoints keep a few weights in float32
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    material = small_material(model)
    result = compress(model, text=_halved(material, dtype), keep=0.7, finetune=3, cache=False)
    after = model.state_dict()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype
        assert torch.equal(tensor, after[name])
    assert vars(model).keys() == vars(small_model("whisper")).keys()
    types = {name: each.dtype for name, each in result.model.named_parameters()}
    assert {types.pop(f"model.decoder.layer_norm.{part}") for part in ("weight", "bias")} == {
        torch.float32
    }
    assert set(types.values()) == {dtype}
    inspection = headwise.inspect(model, text=_halved(material, dtype), cache=False)
    assert inspection.heads["importance"].notna().all()


def _halved(material: Material, dtype: torch.dtype) -> Material:
    """As a user of such a model has it."""
    batches = [
        {name: x.to(dtype) if x.is_floating_point() else x for name, x in batch.items()}
        for batch in (*material.calibration, *material.held_out)
    ]
    return Material(batches[:8], batches[8:], material.source)


def test_the_search_asks_what_the_gate_asks() -> None:
    """Sizes that are tried are rounded like the one that is written."""
    model = small_model("llama").bfloat16()
    material = small_material(model)
    least = compress(model, text=material, max_loss=0.05, cache=False, time_it=False)
    assert least.passed
    assert least.evaluation.verdicts[0].high is not None
    assert least.evaluation.verdicts[0].high <= 0.05


def test_without_the_memory_a_model_keeps_its_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("llama").bfloat16()
    material = small_material(model)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    for free, wide in ((10 * numbers, False), (13 * numbers, True)):
        monkeypatch.setattr(memory, "_available", lambda free=free: free)
        result = compress(model, text=material, keep=0.7, memory=0.1, cache=False)
        assert all(("in float32" in name) == wide for name in result.evaluation.latency_ms)
        assert {parameter.dtype for parameter in result.model.parameters()} == {torch.bfloat16}


def test_a_layer_that_does_nothing_does_not_overflow_in_float16() -> None:
    """Its gradients are next to nothing beside its values; the cut's two factors are alike."""
    model = small_model("bert").half()
    with torch.no_grad():
        model.encoder.layer[0].attention.self.value.weight.mul_(1e-5)
    material = small_material(model)
    result = compress(model, text=material, keep=0.75, fast=True, cache=False, time_it=False)
    largest = max(float(each.detach().abs().max()) for each in result.model.parameters())
    assert largest < 100
    with torch.no_grad():
        assert result.model(**material.held_out[0])[0].isfinite().all()


@torch.no_grad()
def of_rank_two(model: Any) -> Any:
    """The model with queries, keys and values of two dimensions: to cut them costs nothing."""
    projections = ("q_proj", "k_proj", "v_proj", "query", "key", "value")
    for name, weight in model.named_parameters():
        if name.endswith(tuple(f"{each}.weight" for each in projections)):
            u, s, vh = torch.linalg.svd(weight)
            weight.copy_((u[:, :2] * s[:2]) @ vh[:2])
    return model


def test_rounding_that_outweighs_the_cut_is_said() -> None:
    """Weights of rank two are cut for nothing; bfloat16 still rounds what flows through them."""
    model = of_rank_two(small_model("llama"))
    material = small_material(model)
    for half in (False, True):
        given = model.bfloat16() if half else model
        result = compress(given, text=material, keep=0.9, cache=False, time_it=False)
        said = [warning for warning in result.warnings if "in bfloat16" in warning]
        assert bool(said) == half


def test_rounding_of_a_score_is_sought_in_more_than_two_texts() -> None:
    """A text has one score, and most scores near 8 round alike: their steps are of 2⁻⁷."""
    config = small_model("bert").config
    config.num_labels = 1
    torch.manual_seed(0)
    model = of_rank_two(far_from_zero(transformers.BertForSequenceClassification(config).eval()))
    with torch.no_grad():
        model.classifier.bias.fill_(8.0)
    ids = torch.randint(4, 98, (80, 48), generator=torch.Generator().manual_seed(0))
    batches = [{"input_ids": part} for part in ids.split(8)]
    material = Material(batches[:6], batches[6:], "random tokens")
    result = compress(model.half(), text=material, keep=0.9, cache=False, time_it=False)
    assert result.evaluation.damage < 1e-6
    assert any("in float16" in warning for warning in result.warnings)


def test_a_model_that_does_not_run_in_its_own_precision_is_judged_in_float32() -> None:
    """As where torch has no kernel of sixteen bits for this machine; here, of two types at once."""
    model = small_model("llama").bfloat16()
    model.model.norm.float()
    material = small_material(model)
    result = compress(model, text=material, keep=0.7, cache=False, time_it=False)
    assert any("the original does not run here" in warning for warning in result.warnings)


def test_a_model_that_overflows_only_when_it_is_smaller_is_refused() -> None:
    """Values beyond 65504, which the original never reaches."""
    model = small_model("llama").half()
    wide = widened(model)
    smaller = widened(model)
    with torch.no_grad():
        smaller.model.layers[0].self_attn.v_proj.weight.mul_(1e6)
    batches = small_material(model).held_out
    objective = objective_for(model)
    found = in_own_precision(wide, wide, objective, batches)
    assert found is not None
    assert found.original_is_finite
    assert found.warnings() == []
    with pytest.raises(InputError, match="in float16, its own precision, the compressed"):
        in_own_precision(wide, smaller, objective, batches)
    overflowing = in_own_precision(smaller, wide, objective, batches)
    assert overflowing is not None
    assert "the original's outputs are not finite" in overflowing.warnings()[0]
