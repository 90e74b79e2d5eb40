"""Checkpoint folders that no model comes out of: absurd sizes, lost shards, loops, foreign code."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from malformed.case import HERE, Case, InputClass

CONFIG, WEIGHTS, TOKENIZER = "model/config.json", "model/model.safetensors", "model/tokenizer.json"
INDEX = "model/model.safetensors.index.json"


def checkpoint_classes(model: dict[str, bytes]) -> list[InputClass]:
    """`model` is a sound checkpoint: file → content."""
    commands = [
        f"compress {HERE}/model --keep 0.5 --tokens 200",
        f"inspect {HERE}/model --tokens 200",
    ]

    def of(made: list[Callable[[], Case]]) -> SearchStrategy[Case]:
        return st.builds(
            lambda command, case: Case(command.split(), case.files, case.links),
            st.sampled_from(commands),
            st.sampled_from(made).map(lambda make: make()),
        )

    broken = [*_configs(model, _absurd(model)), *_folders(model)]
    return [
        InputClass("hostile: checkpoint folder", of(broken), unusable=True),
        InputClass("hostile: odd configuration", of([*_configs(model, ODD)])),
    ]


ODD: list[dict[str, Any]] = [
    {"pruned_heads": {"0": [0]}},
    {"pruned_heads": {"x": "y"}},
    {"rope_scaling": {"type": 7}, "rope_parameters": {"rope_type": "no-such"}},
    {"text_config": {"model_type": "no-such"}},
    {"pad_token_id": 10**9},
    {"id2label": "x", "label2id": 5, "num_labels": -1},
    {"is_encoder_decoder": "yes"},
    {"tie_word_embeddings": [1]},
    {"layer_norm_epsilon": float("nan")},
    {"attn_pdrop": 7, "resid_pdrop": -1},
    {"n_positions": 0, "n_ctx": 0},
    {"n_positions": 10**12},
    {"n_inner": -5},
    {"attn_implementation": "evil/kernel", "_attn_implementation": "evil/kernel"},
]
"""Entries that transformers may pass over."""


def _configs(
    model: dict[str, bytes], entries: list[dict[str, Any]]
) -> Iterator[Callable[[], Case]]:
    """The configuration with one of the entries."""
    sound = json.loads(model[CONFIG])
    for entry in entries:

        def make(entry: dict[str, Any] = entry) -> Case:
            trap = {"model/evil.py": b"open('executed', 'w')"}
            changed = json.dumps(sound | entry).encode()
            return Case([], {**model, **trap, CONFIG: changed})

        yield make


def _absurd(model: dict[str, bytes]) -> list[dict[str, Any]]:
    """Entries of a configuration with which there is no model."""
    sound = json.loads(model[CONFIG])
    width = next(name for name in ("hidden_size", "n_embd") if name in sound)
    heads = next(name for name in ("num_attention_heads", "n_head") if name in sound)
    layers = next(name for name in ("num_hidden_layers", "n_layer") if name in sound)
    return [
        {width: 10**12},
        {width: 0},
        {width: -16},
        {width: "16"},
        {width: 16.5},
        {heads: 0},
        {heads: -2},
        {heads: 3},
        {heads: 10**9},
        {layers: 10**6},
        {layers: 1},
        {layers: -1},
        {layers: None},
        {"vocab_size": 10**12},
        {"vocab_size": -1},
        {"architectures": [5]},
        {"architectures": ["pipeline"]},
        {"architectures": ["../../x"]},
        {"architectures": {"a": 1}},
        {"model_type": "no-such"},
        {"model_type": 7},
        {"model_type": None},
        {
            "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"},
            "model_type": "evil",
        },
        {"quantization_config": {"quant_method": "no-such"}},
        {"quantization_config": 3},
        {"headwise": [{"type": "LayerLayout"}]},
        {"headwise": "x"},
        {"torch_dtype": "float7", "dtype": "float7"},
        {"hidden_act": "no-such", "activation_function": "no-such"},
    ]


def _folders(model: dict[str, bytes]) -> Iterator[Callable[[], Case]]:
    """The folder with files missing, foreign or in a circle."""
    rest = {name: content for name, content in model.items() if name != WEIGHTS}
    lost = {"weight_map": {"x": "model-00001-of-00002.safetensors"}, "metadata": {}}
    outside = {"weight_map": {"x": "../../outside.safetensors"}, "metadata": {}}
    yield lambda: Case([], rest)
    yield lambda: Case([], {**rest, INDEX: json.dumps(lost).encode()})
    yield lambda: Case(
        [], {**rest, INDEX: json.dumps(outside).encode(), "model/a.safetensors": b""}
    )
    yield lambda: Case([], {**rest, INDEX: b"[]", "model/a.safetensors": b""})
    for weights in (
        {"x": "/etc/passwd"},
        {"x": 5},
        {"x": ["model.safetensors"]},
        {"\ud800": "\ud800.safetensors"},
        {"x": "a" * 5000},
        {"x": ""},
        {"x": "https://127.0.0.1:9/model.safetensors"},
        ["model.safetensors"],
        {},
    ):
        index = json.dumps({"weight_map": weights, "metadata": "x"}).encode()
        yield lambda index=index: Case([], {**rest, INDEX: index})  # type: ignore[misc]
    yield lambda: Case([], {**rest, f"{WEIGHTS}/inside": b""})
    yield lambda: Case([], {**rest, "model/adapter_config.json": b'{"peft_type": "LORA"}'})
    yield lambda: Case([], {**rest, "model/model.gguf": b"GGUF" + bytes(99)})
    yield lambda: Case(
        [], {f"{CONFIG}/inside": b"", **{name: model[name] for name in model if name != CONFIG}}
    )
    evil = b'{"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Tokenizer", null]}}'
    traps = {"model/tokenizer_config.json": evil, "model/evil.py": b"open('executed', 'w')"}
    yield lambda: Case([], {**model, **traps, TOKENIZER: b""})
    yield lambda: Case([], {**model, TOKENIZER: b'{"model": {"type": "BPE", "vocab": [], "x": 1}}'})
    yield lambda: Case([], {**model, CONFIG: model[CONFIG].decode().encode("utf-16")})
    yield lambda: Case([], {**model, CONFIG: model[CONFIG].replace(b"{", b'{"n_embd": NaN,', 1)})
    yield lambda: Case([], {**rest, "model/pytorch_model.bin": b"\x80\x04."})
    yield lambda: Case([], rest, {WEIGHTS: "model.safetensors"})
    yield lambda: Case([], rest, {WEIGHTS: "/dev/zero"})
    yield lambda: Case([], rest, {WEIGHTS: "../pipe"})
    yield lambda: Case([], {}, {"model": "model"})
    yield lambda: Case([], {"other": b""}, {"model": "other"})
    yield lambda: Case([], {"model": b"file"})
    yield lambda: Case([], {CONFIG: model[CONFIG]})
    yield lambda: Case([], {**model, CONFIG: b"\xff" * 100})
    yield lambda: Case([], {**model, CONFIG: b""})
    yield lambda: Case([], {**model, CONFIG: b"[" * 60_000})
    yield lambda: Case([], {**model, TOKENIZER: b"{}"})
    yield lambda: Case([], {**model, TOKENIZER: b"[" * 60_000})
    yield lambda: Case(
        [], {name: content for name, content in model.items() if "token" not in name}
    )
