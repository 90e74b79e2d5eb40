"""`headwise.compress` and `headwise.inspect`: what they take, refuse, give back and show."""

import inspect as signatures
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import typer
from small_models import common_words, small_material, small_model

import headwise
from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import Family, attention_sites, register_family
from headwise.pretrained.adapters.llama import llama_sites


def test_a_folder_and_the_model_loaded_from_it_give_the_same(checkpoint: Path, text: Path) -> None:
    options: dict[str, Any] = {"keep": 0.6, "text": text, "time_it": False}
    by_name = headwise.compress(checkpoint, **options)
    loaded = headwise.from_pretrained(checkpoint)
    by_object = headwise.compress(loaded, tokenizer=common_words(), **options)
    assert by_name.plan == by_object.plan
    one, two = by_name.model.state_dict(), by_object.model.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_bytes_of_cache_are_bytes() -> None:
    model = small_model("llama")  # 2 layers, 3 key heads of 8 keys and 8 values: 384 bytes
    result = headwise.compress(model, text=small_material(model), kv_bytes=200, time_it=False)
    counted = result.evaluation.cache_bytes_per_token
    assert counted is not None
    assert counted.original == 384
    assert 150 < counted.compressed <= 200


def test_a_result_is_shown_saved_drawn_and_read_by_pandas(tmp_path: Path) -> None:
    model = small_model("llama")
    seen: list[tuple[float, str]] = []
    result = headwise.compress(
        model,
        text=small_material(model),
        keep=0.6,
        max_loss=50.0,
        out=tmp_path / "small",
        time_it=False,
        on_progress=lambda fraction, doing: seen.append((fraction, doing)),
    )
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert all(doing for _, doing in seen)
    assert result.passed
    size = (tmp_path / "small" / "model.safetensors").stat().st_size
    assert result.bytes_on_disk == size
    shown = str(result)
    assert "attention parameters" in shown
    assert f"{size:,} bytes; open it with headwise.from_pretrained" in shown
    assert "<table" in result._repr_mimebundle_()["text/html"]
    assert list(result.to_pandas().columns) == ["", "original", "compressed", "ratio"]
    heads = result.heads()
    assert heads["qk_dim"].between(1, 8).all()
    result.figure(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    page = result.report(tmp_path / "page.html").read_text()
    assert 'id="figure-compression-layers"' in page
    assert "editor" not in page.partition("const embedOptions")[2]


def test_an_inspection_is_shown_and_drawn(tmp_path: Path) -> None:
    model = small_model("bert")
    inspection = headwise.inspect(model, text=small_material(model))
    assert str(inspection).count("\n") > len(inspection.heads)
    assert all(finding in str(inspection) for finding in inspection.findings)
    assert "<li>" in inspection._repr_html_()
    assert inspection.to_pandas() is inspection.heads
    inspection.figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"\.pdf"):
        inspection.figure(tmp_path / "figure.jpg")


def never(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("a model was opened")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "say how small"),
        ({"keep": 0.5, "kv_bytes": 100}, "say how small"),
        ({"keep": 0.0}, "above 0 and at most 1"),
        ({"keep": 1.5}, "above 0 and at most 1"),
        ({"kv_bytes": 0}, "kv_bytes is 0"),
        ({"max_loss": -1.0}, "must not be negative"),
        ({"keep": 0.5, "method": "magic"}, "magic"),
        ({"keep": 0.5, "method": "random", "uniform": True}, "uniform goes with"),
        ({"keep": 0.5, "finetune": -1}, "finetune is -1"),
        ({"keep": 0.5, "tokens": 0}, "tokens is 0"),
        ({"keep": 0.5, "text": "none.txt"}, "cannot read none.txt"),
        ({"keep": 0.5, "out": "."}, "exists; choose a new folder"),
        ({"plan": "none.json"}, "cannot read none.json"),
    ],
)
def test_cheap_mistakes_are_found_before_a_model_is_opened(
    options: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headwise.pretrained.model.opening.load_model", never)
    with pytest.raises(InputError, match=sentence):
        headwise.compress("a-model", **options)


def test_an_encoder_has_no_cache_to_count_in_bytes() -> None:
    model = small_model("bert")
    with pytest.raises(InputError, match="no key–value cache"):
        headwise.compress(model, text=small_material(model), kv_bytes=10)
    model = small_model("llama")
    with pytest.raises(InputError, match="this model uses 384 bytes"):
        headwise.compress(model, text=small_material(model), kv_bytes=385)


def test_text_without_a_tokenizer_and_what_is_no_model_get_a_sentence() -> None:
    with pytest.raises(InputError, match="needs a tokenizer"):
        headwise.compress(small_model("llama"), keep=0.5)
    with pytest.raises(InputError, match="is not a model"):
        headwise.inspect(3)
    with pytest.raises(InputError, match=r"does not end in \.html"):
        headwise.inspect("a-model", report="page.pdf")


@pytest.mark.parametrize("name", ["compress", "inspect"])
def test_the_command_has_the_options_of_the_function(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {parameter.name: parameter.default for parameter in command.params}
    options.pop("as_json")
    function = signatures.signature(getattr(headwise, name)).parameters
    assert set(options) <= set(function)
    for option, default in options.items():
        if option != "model":
            assert function[option].default == default, option


def test_a_user_registers_a_family_of_models() -> None:
    model = small_model("llama")
    model.config.model_type = "my-llama"
    with pytest.raises(InputError, match="my-llama"):
        attention_sites(model)
    register_family("my-llama", Family(sites=llama_sites))
    try:
        assert len(attention_sites(model)) == 2
        with pytest.raises(InputError, match="registered already"):
            register_family("my-llama", Family(sites=llama_sites))
    finally:
        headwise.pretrained.FAMILIES.pop("my-llama")


def test_a_model_of_a_short_context_is_timed_within_it() -> None:
    config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=99, n_positions=32)
    model = transformers.GPT2LMHeadModel(config).eval()
    result = headwise.compress(model, text=small_material(model), keep=0.5)
    assert "a generated token" in result.evaluation.latency_ms
