"""Files in and out: plans, checkpoints, texts; and a sentence for each that cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import shrunk, small_material, small_model
from typer.testing import CliRunner

import headwise
from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import compress, load_model, measure_model, read_plan
from headwise.pretrained._evaluate import quality
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.plan.plan_file import check_plan, write_plan
from headwise.pretrained.text.calibration import read_text


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_one_command_compresses_and_the_plan_it_leaves_gives_the_same_model(
    checkpoint: Path, text: Path, tmp_path: Path
) -> None:
    first = run(
        "compress", checkpoint, "--keep", 0.6, "--text", text, "--out", tmp_path / "a", "--json"
    )
    assert first.exit_code == 0, first.output
    report = json.loads(first.stdout)
    assert report["evaluation"]["attention_parameters"]["compressed"] > 0
    plan = tmp_path / "a" / "headwise_plan.json"
    second = run("compress", checkpoint, "--plan", plan, "--text", text, "--out", tmp_path / "b")
    assert second.exit_code == 0, second.output
    one, two = (headwise.from_pretrained(tmp_path / name).state_dict() for name in "ab")
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert (tmp_path / "a" / "model.safetensors").stat().st_size < (
        checkpoint / "model.safetensors"
    ).stat().st_size


def test_an_edited_plan_is_applied_as_edited(checkpoint: Path) -> None:
    model = load_model(checkpoint)
    material = small_material(model)
    measurement = measure_model(model, material)
    result = compress(model, text=material, keep=0.6, measurement=measurement, time_it=False)
    path = checkpoint / "plan.json"
    write_plan(result.plan, path)
    data = json.loads(path.read_text())
    data["layers"][0] |= {"query_rank": None, "key_rank": None, "padded": False}
    data["layers"][0]["groups"][0] |= {"qk_dim": 4, "v_dim": 2}
    path.write_text(json.dumps(data))
    edited = compress(
        model, text=material, plan=read_plan(path), measurement=measurement, time_it=False
    ).model
    assert edited.model.layers[0].self_attn.key_widths[-1] == 4


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["model"].update(weights="0" * 16), "another model"),
        (lambda d: d["model"].update(hidden=99), "another model"),
        (lambda d: d["layers"].pop(), "1 layers, the model 2"),
        (lambda d: d["layers"][0]["groups"][0].update(v_dim=9), "v_dim is 9"),
        (lambda d: d["layers"][0]["groups"][0].update(v_dim=0), "v_dim is 0"),
        (lambda d: d["layers"][1]["groups"][2].update(heads=[0]), "can have heads"),
        (lambda d: d["layers"][0].update(query_rank=1000), "query_rank is 1000"),
        (lambda d: d.update(method="magic"), "magic"),
        (lambda d: d.update(colour=1), "has no field colour"),
        (lambda d: [g.update(heads=[]) for g in d["layers"][0]["groups"]], "at least one"),
    ],
)
def test_a_wrong_plan_gets_a_sentence(change: Any, sentence: str, tmp_path: Path) -> None:
    model = small_model("llama")
    measurement = measure_model(model, small_material(model))
    plan = shrunk(model, small_material(model), "cache", 1.0, measurement).plan
    write_plan(plan, tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    change(data)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=sentence):
        check_plan(read_plan(tmp_path / "plan.json"), measurement.identity, measurement.sites)


def _truncate(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


def _pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _corrupt(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(b"\xff" * 64 + weights.read_bytes()[64:])


def _without_layer(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors.pop("model.layers.1.self_attn.v_proj.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_truncate, "cannot be loaded"),
        (_corrupt, "cannot be loaded"),
        (_pickle_only, "only as a pickle"),
        (_without_layer, "incomplete"),
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "neither a folder with a model"),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_broken_checkpoint_gets_a_sentence_and_nothing_is_written(
    damage: Any, sentence: str, checkpoint: Path, text: Path, tmp_path: Path
) -> None:
    damage(checkpoint)
    out = tmp_path / "out"
    result = run("compress", checkpoint, "--keep", 0.5, "--text", text, "--out", out)
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)
    assert not out.exists()
    assert not list(tmp_path.glob(".writing*"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "is empty"), (b" \n\t", "is empty"), (b"caf\xe9 au lait" * 50, "not UTF-8")],
)
def test_unusable_text_gets_a_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_text(path)
    with pytest.raises(InputError, match="cannot read"):
        read_text(tmp_path / "none.txt")


def test_the_quality_gate_decides_the_exit_code(checkpoint: Path, text: Path) -> None:
    arguments = ("compress", checkpoint, "--keep", 0.3, "--text", text, "--json", "--max-loss")
    strict, lax = run(*arguments, 0), run(*arguments, 100)
    assert json.loads(lax.stdout)["gate"]["passed"]
    assert lax.exit_code == 0
    assert not json.loads(strict.stdout)["gate"]["passed"]
    assert strict.exit_code == 1


def test_the_smallest_model_within_a_loss_is_found() -> None:
    model = small_model("bert")
    material = small_material(model)
    measurement = measure_model(model, material)
    sizes = []
    for limit in (0.0005, 0.005, 0.05):
        result = compress(
            model, text=material, max_loss=limit, measurement=measurement, time_it=False
        )
        assert result.evaluation.verdicts[0].high <= limit
        sizes.append(result.evaluation.attention_parameters.ratio)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.9


@pytest.mark.parametrize("name", ["llama", "llama-biased", "qwen2", "mistral", "vit"])
def test_a_uniform_result_is_judged_as_stock_transformers_opens_it(
    name: str, tmp_path: Path
) -> None:
    model = small_model(name)
    material = small_material(model)
    result = compress(model, text=material, keep=0.7, uniform=True, time_it=False)
    assert 0.3 < result.evaluation.attention_parameters.ratio < 0.75  # 0.7 and biases
    result.model.save_pretrained(tmp_path / "stock")
    stock = type(model).from_pretrained(tmp_path / "stock")
    assert type(stock) is type(result.model)
    damage = quality(model, stock, objective_for(model), material.samples[0]).damage
    assert damage == pytest.approx(result.evaluation.damage, rel=1e-6)


def test_a_uniform_budget_of_half_the_heads_keeps_half_the_heads() -> None:
    model = small_model("llama", num_attention_heads=6, num_key_value_heads=6)
    material = small_material(model)
    result = compress(model, text=material, keep=0.5, uniform=True, time_it=False)
    assert result.evaluation.attention_parameters.ratio == pytest.approx(0.5, abs=0.02)
    assert result.model.config.num_attention_heads == 3


@pytest.mark.parametrize(("name", "heads"), [("llama", 4), ("gemma3", 4), ("mistral", 5)])
def test_a_uniform_result_has_a_number_of_heads_that_the_configuration_takes(
    name: str, heads: int, tmp_path: Path
) -> None:
    """Five of six: Llama's and Gemma's stock configurations ask that they divide the width, 48."""
    sizes = {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": 8}
    model = small_model(name, **sizes)
    material = small_material(model)
    result = compress(model, text=material, keep=0.9, uniform=True, time_it=False)
    result.model.save_pretrained(tmp_path / "stock")
    stock = type(model).from_pretrained(tmp_path / "stock")
    assert stock.config.num_attention_heads == heads


def test_a_family_that_cannot_be_uniform_in_stock_transformers_is_told_so() -> None:
    from headwise.pretrained.plan.uniform import stock_reason

    for model_type in ("bert", "gpt2", "distilbert"):
        assert "from_pretrained" in str(stock_reason(model_type))


def test_importing_headwise_brings_neither_torch_nor_transformers() -> None:
    import subprocess
    import sys

    code = "import headwise, sys; print({'torch', 'transformers'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
