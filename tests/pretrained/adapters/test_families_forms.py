"""Types, shards and device maps in and out; peers, fast and uniform plans, over families."""

from pathlib import Path

import pytest
import torch
from small_models import measured, small_material, small_model, word_tokenizer

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Budget, apply_plan, compress, make_plan
from headwise.pretrained._evaluate import attention_parameters
from headwise.pretrained.closeup.sizes import sizes_to_choose
from headwise.pretrained.closeup.texts import continuations
from headwise.pretrained.model.opening import opened
from headwise.pretrained.text.calibration import Sample

PEERS = ["svd-llm", "modegpt", "taylor", "uniform-svd", "prune-heads", "random"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["qwen3", "bart", "olmo2"])  # OLMo 2 turns in single precision
def test_half_precision_goes_in_and_comes_out(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    model = small_model(name).to(dtype)
    result = compress(model, text=small_material(model), keep=0.6, time_it=False)
    assert {parameter.dtype for parameter in result.model.parameters()} == {dtype}
    assert result.evaluation.damage < 10
    again = headwise.from_pretrained(result.save(tmp_path / "half"))
    assert {parameter.dtype for parameter in again.parameters()} == {dtype}


def test_shards_and_a_device_map_open(tmp_path: Path) -> None:
    model, material, measurement = measured("qwen3")
    model.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    subject = opened(str(tmp_path / "shards"), tokenizer=object())
    result = compress(
        subject.model, text=material, keep=0.5, measurement=measurement, time_it=False
    )
    result.model.save_pretrained(tmp_path / "smaller", max_shard_size="20KB")
    again = headwise.from_pretrained(tmp_path / "smaller", device_map="cpu")
    batch = material.held_out[0]
    with torch.no_grad():
        assert torch.equal(again(**batch)[0], result.model(**batch)[0])


def test_code_from_a_checkpoint_is_never_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="never runs code"):
        headwise.from_pretrained(tmp_path, trust_remote_code=True)


def test_weights_that_are_not_in_memory_are_refused() -> None:
    with pytest.raises(InputError, match="not all in memory"):
        compress(small_model("llama").to("meta"), keep=0.5)


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("name", ["bert", "olmo2", "stablelm"])
def test_a_peer_keeps_what_was_asked_and_is_saved(name: str, method: str, tmp_path: Path) -> None:
    model, material, measurement = measured(name)
    if measurement.sites[0].norm is not None and method in ("modegpt", "uniform-svd"):
        with pytest.raises(InputError, match="a norm on queries and keys leaves"):
            make_plan(measurement, Budget(0.5), method)
        return
    plan = make_plan(measurement, Budget(0.6), method)
    result = compress(model, text=material, plan=plan, measurement=measurement, time_it=False)
    assert 0.45 < result.evaluation.attention_parameters.ratio < 0.63  # whole heads, whole sizes
    again = headwise.from_pretrained(result.save(tmp_path / "peer"))
    with torch.no_grad():
        batch = material.held_out[0]
        assert torch.equal(again(**batch)[0], result.model(**batch)[0])


def test_whitened_factors_are_the_best_for_the_inputs() -> None:
    """An oracle in numpy's terms: the truncated SVD of W L, multiplied by the inverse of L."""
    model, _, measurement = measured("llama-biased")
    plan = make_plan(measurement, Budget(0.7), "svd-llm")
    smaller = apply_plan(model, measurement, plan)
    site, layer = measurement.sites[0], measurement.reductions[0]
    factor = torch.linalg.cholesky(layer.moments.input)
    u, s, vh = torch.linalg.svd(layer.weights.query.weight.double() @ factor)
    rank = plan.layers[0].query_rank
    expected = (u[:, :rank] * s[:rank]) @ vh[:rank] @ torch.linalg.inv(factor)
    thin, wide = smaller.get_submodule(site.path).q_proj
    torch.testing.assert_close((wide.weight @ thin.weight).double(), expected, rtol=1e-3, atol=1e-4)


def test_methods_that_need_one_input_refuse_cross_attention() -> None:
    for method in ("svd-llm", "modegpt"):
        with pytest.raises(InputError, match="without cross-attention"):
            make_plan(measured("t5").measurement, Budget(0.5), method)


@pytest.mark.parametrize("counts", ["parameters", "cache"])
@pytest.mark.parametrize("name", ["llama-biased", "qwen3", "gpt-neox", "gpt2", "bart", "olmo2"])
def test_a_fast_plan_gives_each_layer_one_size_and_one_call(name: str, counts: str) -> None:
    model, material, measurement = measured(name)
    plan = make_plan(measurement, Budget(0.6, counts), fast=True)
    for shape in plan.layers:
        sizes = {(g.qk_dim, g.v_dim) for g in shape.groups if g.heads}
        assert len(sizes) == 1
        assert all(qk_dim == v_dim for qk_dim, v_dim in sizes)
    smaller = apply_plan(model, measurement, plan)
    if counts == "parameters":
        kept = attention_parameters(smaller, measurement.sites)
        assert 0.3 < kept / attention_parameters(model, measurement.sites) <= 0.62
    # The same sizes computed without fusing: the same model.
    plain = [shape.__class__(groups=shape.groups) for shape in plan.layers]
    same = apply_plan(model, measurement, plan.__class__(**vars(plan) | {"layers": tuple(plain)}))
    with torch.no_grad():
        for batch in material.held_out:
            torch.testing.assert_close(smaller(**batch)[0], same(**batch)[0], rtol=1e-4, atol=1e-5)


def test_fast_generation_with_a_cache_equals_generation_without() -> None:
    model, _, measurement = measured("llama")
    smaller = apply_plan(
        model, measurement, make_plan(measurement, Budget(0.5, "cache"), fast=True)
    )
    prompt = torch.randint(4, 98, (2, 7), generator=torch.Generator().manual_seed(3))
    options = {"max_new_tokens": 12, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options |= {"pad_token_id": 0, "eos_token_id": None}
    cached = smaller.generate(prompt, use_cache=True, **options)
    assert torch.equal(cached, smaller.generate(prompt, use_cache=False, **options))


def test_the_sizes_to_choose_from_are_of_the_kind_that_was_chosen() -> None:
    model, material, measurement = measured("llama")
    sample = Sample(material.held_out[:1], "held out")
    points = sizes_to_choose(model, measurement, sample, fast=True)
    own = [point for point in points if point.method == "fisher"]
    assert own
    for point in own:
        sizes = [{(g.qk_dim, g.v_dim) for g in s.groups if g.heads} for s in point.layers]
        assert all(len(each) == 1 for each in sizes)
        assert min(point.shares) <= point.kept <= max(point.shares)


@pytest.mark.parametrize("change", [{"method": "taylor"}, {"uniform": True}])
def test_fast_goes_with_fisher_alone(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="fast goes with"):
        compress("nowhere", keep=0.5, fast=True, **change)


@pytest.mark.parametrize(
    "name", ["qwen3", "gemma2", "gemma3", "smollm3", "mixtral", "deit", "dinov2"]
)
def test_a_uniform_result_opens_in_stock_transformers(name: str, tmp_path: Path) -> None:
    model, material, measurement = measured(name)
    result = compress(
        model, text=material, keep=0.7, uniform=True, measurement=measurement, time_it=False
    )
    assert 0.3 < result.evaluation.attention_parameters.ratio < 0.75
    result.model.save_pretrained(tmp_path / "stock")
    stock = type(model).from_pretrained(tmp_path / "stock")
    with torch.no_grad():
        batch = material.held_out[0]
        torch.testing.assert_close(stock(**batch)[0], result.model(**batch)[0])


@pytest.mark.parametrize("name", ["bert", "gpt2", "phi", "modernbert", "bart"])
@pytest.mark.parametrize("goal", [{"keep": 0.5}, {"max_loss": 9.0}])
def test_what_stock_transformers_could_not_open_is_refused_before_anything_is_measured(
    name: str, goal: dict[str, float]
) -> None:
    model = small_model(name)

    def never(share: float, what: str) -> None:
        raise AssertionError(what)

    sentence = "stock transformers could not open|all of one shape"
    with pytest.raises(InputError, match=sentence):
        compress(model, text=small_material(model), uniform=True, on_progress=never, **goal)


@pytest.mark.parametrize("name", ["bart", "clip"])
def test_layers_of_several_kinds_cannot_be_uniform(name: str) -> None:
    with pytest.raises(InputError, match="all of one shape"):
        make_plan(measured(name).measurement, Budget(0.5), uniform=True)


@pytest.mark.parametrize("name", ["t5", "bart", "whisper", "vit", "gpt2"])
def test_both_models_are_timed_whatever_they_read(name: str) -> None:
    model, material, measurement = measured(name)
    result = compress(model, text=material, keep=0.7, measurement=measurement)
    assert all(pair.compressed > 0 for pair in result.evaluation.latency_ms.values())
    assert any("forward" in what for what in result.evaluation.latency_ms)


@pytest.mark.parametrize("name", ["t5", "bart", "gpt2"])
def test_continuations_are_all_that_is_written_after_a_beginning(name: str) -> None:
    model, material, measurement = measured(name)
    shown = continuations(model, model, material.held_out, measurement.objective, word_tokenizer())
    for text in shown:
        assert text.before == text.after
        assert text.equal > 30  # of forty, unless the model ends
    assert shown
