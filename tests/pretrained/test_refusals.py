"""Nothing is destroyed silently: broken weights, failed gates, places that cannot be written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import common_words, small_material, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Budget, Material, make_plan, measure_model
from headwise.pretrained.checks import uncertain
from headwise.pretrained.measure.curves import corrected
from headwise.pretrained.plan.goal import check_share


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_broken_weight_is_named_before_anything_is_measured(value: float) -> None:
    model = small_model("llama")
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 3] = value
    for work in (headwise.inspect, lambda m, **o: headwise.compress(m, keep=0.5, **o)):
        with pytest.raises(InputError, match=r"layers\.1\.mlp\.up_proj\.weight"):
            work(model, text=small_material(model))


@pytest.mark.parametrize("said", [True, "yes"])
def test_a_decoder_that_is_said_to_have_an_encoder_is_refused(said: Any) -> None:
    model = small_model("llama")
    model.config.is_encoder_decoder = said
    for work in (headwise.inspect, lambda m, **o: headwise.compress(m, keep=0.5, **o)):
        with pytest.raises(InputError, match="LlamaForCausalLM has no encoder"):
            work(model, text=small_material(model))


def test_outputs_that_have_no_names_are_refused() -> None:
    model = small_model("bert", return_dict=False)
    with pytest.raises(InputError, match="return_dict = False"):
        headwise.compress(model, text=small_material(model), keep=0.5)


def test_a_model_too_short_for_any_text_is_told_from_a_text_too_short(text: Path) -> None:
    model = small_model("llama", max_position_embeddings=4)
    with pytest.raises(InputError, match="takes at most 4 tokens"):
        headwise.compress(model, text=text, tokenizer=common_words(), keep=0.5)


def test_outputs_that_overflow_are_refused() -> None:
    model = small_model("llama")
    with torch.no_grad():
        model.lm_head.weight.fill_(3e38)
    with pytest.raises(InputError, match="not finite"):
        headwise.compress(model, text=small_material(model), keep=0.5)


BATCHES: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "lists": (lambda ids: {"input_ids": ids.tolist()}, "input_ids is a list"),
    "numpy": (lambda ids: {"input_ids": ids.numpy()}, "input_ids is a ndarray"),
    "alone": (lambda ids: ids, "a batch is a Tensor"),
    "none": (lambda ids: {"input_ids": ids[:0]}, "nothing in its input_ids"),
    "nothing": (lambda ids: {}, "nothing in it"),
    "flat": (lambda ids: {"input_ids": ids[0]}, r"shape \(\d+,\); it has to be a row a text"),
    "embedded": (lambda ids: {"inputs_embeds": torch.randn(*ids.shape, 36)}, "its input_ids"),
    "a number": (lambda ids: {"input_ids": ids, "flag": torch.tensor(True)}, "flag is one number"),
    "one token": (lambda ids: {"input_ids": ids[:, :1]}, "one token, and none to predict"),
}


@pytest.mark.parametrize("how", BATCHES)
def test_batches_that_are_none_are_refused_in_a_sentence(how: str) -> None:
    model, (change, sentence) = small_model("llama"), BATCHES[how]
    material = small_material(model)
    calibration = [change(batch["input_ids"]) for batch in material.calibration]
    with pytest.raises(InputError, match=sentence):
        headwise.compress(model, text=material._replace(calibration=calibration), keep=0.5)


def test_where_no_gradient_can_be_taken_nothing_is_measured() -> None:
    with torch.inference_mode():
        model = small_model("llama")
        material = small_material(model)
        with pytest.raises(InputError, match=r"torch\.inference_mode"):
            headwise.compress(small_model("llama"), text=material, keep=0.5)
    with pytest.raises(InputError, match=r"torch\.inference_mode"):
        headwise.inspect(model, text=small_material(small_model("llama")))


def test_under_autocast_nothing_is_measured() -> None:
    model = small_model("llama")
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(InputError, match="autocast"):
        headwise.compress(model, text=small_material(model), keep=0.5)
    assert not torch.is_autocast_enabled("cpu")


def test_above_the_gate_nothing_is_written(tmp_path: Path) -> None:
    model = small_model("llama")
    out = tmp_path / "small"
    result = headwise.compress(
        model, text=small_material(model), keep=0.4, max_loss=1e-9, out=out, time_it=False
    )
    assert result.passed is False
    assert not out.exists()
    assert "nothing is written" in str(result)
    with pytest.raises(InputError, match="is ABOVE 1e-09"):
        result.save(out)
    result.max_loss = None
    result.save(out)
    assert out.is_dir()


def test_a_plan_far_from_what_was_asked_for_is_refused() -> None:
    model = small_model("bert")
    measurement = measure_model(model, small_material(model))
    plan = make_plan(measurement, Budget(0.75))
    check_share(plan, measurement)
    assert plan.budget is not None
    plan.budget["fraction"] = 1.0
    with pytest.raises(InputError, match="the plan keeps 7"):
        check_share(plan, measurement)


def test_a_shape_that_keeps_much_less_than_was_asked_for_is_a_warning() -> None:
    """Three groups of heads, of which one shape for all layers keeps two."""
    model = small_model("llama")
    material = small_material(model)
    measurement = measure_model(model, material)
    for keep, said in ((0.99, True), (0.7, False)):
        result = headwise.compress(
            model, text=material, measurement=measurement, keep=keep, uniform=True, time_it=False
        )
        warned = [words for words in result.warnings if "one shape for all layers" in words]
        assert bool(warned) == said
        assert all("99.0 % of the attention's parameters were asked for" in w for w in warned)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"keep": 0.001}, r"the least is \d+\.\d+ %"),
        ({"keep": 0.001, "method": "taylor"}, "would remove every head"),
        ({"keep": 0.02, "fast": True}, "with one size a layer"),
        ({"keep": 0.02, "method": "svd-llm"}, "too small for such a share"),
        ({"kv_bytes": 10**9}, "this model uses 384 bytes"),
    ],
)
def test_what_a_model_cannot_become_is_said_before_it_is_measured(
    options: dict[str, Any], sentence: str
) -> None:
    model, done = small_model("llama"), list[str]()

    def on_progress(share: float, message: str) -> None:
        done.append(message)

    with pytest.raises(InputError, match=sentence):
        headwise.compress(model, text=small_material(model), on_progress=on_progress, **options)
    assert done == []


def test_a_model_that_does_not_run_itself_is_told_from_one_that_cannot_be_judged() -> None:
    model = small_model("gpt2")
    calibration, held_out = torch.randint(99, (2, 2, 2 * model.config.n_positions)).split(1)
    text = Material([{"input_ids": calibration[0]}], [{"input_ids": held_out[0]}], "long inputs")
    with pytest.raises(InputError, match="does not run as it is, before anything is cut"):
        headwise.compress(model, text=text, keep=0.5)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_closed_folder_is_refused_before_a_model_is_opened(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        headwise.compress("a-model", keep=0.5, out=closed / "deep" / "small")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"length": 3}, "length is 3; it is a whole number, at least 8"),
        ({"pool": "max"}, "known are mean, cls, last"),
        ({"memory": 0.0}, "gigabytes above 0"),
        ({"seed": -1}, "seed is -1"),
        ({"tokens": 0}, "tokens is 0"),
        ({"tokens": 99.5}, "a whole number"),
        ({"finetune": -1}, "finetune is -1"),
        ({"text": ["one text", "another"]}, "text is a list; it names a file"),
        ({"text": "/dev/null"}, "it is a pipe or a device; save what it gives to a file first"),
        ({"eval_text": "none.txt"}, "cannot read none.txt: No such file"),
        ({"max_loss": float("inf")}, "max_loss is inf"),
        ({"out": "file/small"}, "cannot be written"),
        ({"out": "small", "report": "small/page.html"}, "inside small, which is to be new"),
    ],
)
def test_options_are_checked_first(
    options: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=sentence):
        headwise.compress("no-such-model", keep=0.5, **options)


def test_architectures_that_are_no_names_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    for names in ({"a": 1}, [5], "x"):
        config = {"model_type": "llama", "architectures": names}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match=r"architectures|that transformers can open"):
            headwise.inspect(str(tmp_path))


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"num_hidden_layers": 10**6}, r"tells of 1000000 layers, and the weights are \d+ tensors"),
        ({"num_hidden_layers": 1}, "weights of more layers than its config.json tells of"),
        ({"quantization_config": {"quant_method": "no-such"}}, "quantised .* dequantise it first"),
        ({"architectures": ["../../x"]}, "it is a list of names"),
    ],
)
def test_a_configuration_that_lies_gets_a_sentence(
    entry: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    small_model("llama").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | entry))
    with pytest.raises(InputError, match=sentence):
        headwise.from_pretrained(tmp_path)


def test_a_negative_number_of_heads_gets_a_sentence(tmp_path: Path) -> None:
    # GPT-2's class takes it: the product of heads and their size is the width all the same.
    small_model("gpt2").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_head": -2}))
    model = headwise.from_pretrained(tmp_path)
    with pytest.raises(InputError, match="tells of -2 heads"):
        headwise.compress(model, keep=0.5)


def test_a_damage_that_few_documents_make_is_called_unknown() -> None:
    model = small_model("llama")
    result = headwise.compress(model, text=small_material(model), keep=0.6, time_it=False)
    verdict = result.evaluation.verdicts[0]
    assert verdict.high is not None
    assert verdict.high < 2 * verdict.damage
    assert not any("is not known" in warning for warning in result.warnings)
    verdict.high = 2.5 * verdict.damage
    assert "give more text" in uncertain(result.evaluation)[0]


def test_losses_that_are_rounding_make_no_nan() -> None:
    """On a text of one token what a cut loses is rounding, to either side of zero."""
    predicted, measured = np.array([4.0, 2e-7, -1e-7, 0.0]), np.array([-3e-7, 1e-7, 0.0])
    curve = corrected(predicted, [1, 2, 3], measured)
    assert curve.tolist() == [4.0, 2e-7, 0.0, 0.0]
