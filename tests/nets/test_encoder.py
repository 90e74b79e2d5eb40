"""Attention layers and encoders, against independent implementations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headwise.core.errors import InputError
from headwise.nets import (
    AttentionNet,
    AttentionNetShape,
    AttentionShape,
    ClassTokenNet,
    EncoderNet,
    EncoderShape,
)


def randomised(shape: AttentionNetShape | EncoderShape, seed: int = 0) -> dict[str, Tensor]:
    """Weights none of which is zero, so that nothing can be forgotten unnoticed."""
    rng = np.random.default_rng(seed)
    return {
        name: torch.from_numpy(rng.normal(0, 0.5, size).astype(np.float32))
        for name, size in shape.parameter_shapes().items()
    }


LAYER = AttentionNetShape(
    token_dim=5, outputs=4, layer=AttentionShape(heads=3, qk_dim=2, v_dim=7), biases=True
)
LAYERS = {
    "cross": LAYER,
    "self": replace(LAYER, query="each"),
    "hard": replace(LAYER, kind="hardmax", biases=False, scaled=False),
    "position bias": replace(LAYER, position_bias=6),
    "scalar": AttentionNetShape(
        token_dim=5,
        outputs=5,
        layer=AttentionShape(heads=3, qk_dim=2, v_dim=5),
        values="scalar",
    ),
}


def by_hand(shape: AttentionNetShape, params: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """One sequence, one head, one query at a time, as the formula is written."""
    layer, answers = shape.layer, []
    asking = tokens[-1:] if shape.query == "last" else tokens
    keys = tokens[:-1] if shape.query == "last" else tokens

    def project(part: str, token: Tensor, head: int, size: int) -> Tensor:
        rows = slice(head * size, (head + 1) * size)
        bias = params[f"{part}.bias"][rows] if shape.biases else 0.0
        return params[f"{part}.weight"][rows] @ token + bias

    for token in asking:
        heads, mixed = [], torch.zeros(shape.token_dim)
        for head in range(layer.heads):
            query = project("query", token, head, layer.qk_dim)
            scores = torch.stack([query @ project("key", k, head, layer.qk_dim) for k in keys])
            scores = scores / (layer.qk_dim**0.5 if shape.scaled else 1.0)
            if shape.position_bias:
                scores = scores + params["position_bias"][head, : len(keys)]
            weights = torch.softmax(scores, 0)
            if shape.kind == "hardmax":
                weights = nn.functional.one_hot(scores.argmax(), len(keys)).float()
            if shape.values == "scalar":
                mixed = mixed + params["mix"][head] * (weights @ keys)
            else:
                values = torch.stack([project("value", k, head, layer.v_dim) for k in keys])
                heads.append(weights @ values)
        if shape.values == "scalar":
            answers.append(mixed)
        else:
            bias = params["out.bias"] if shape.biases else 0.0
            answers.append(params["out.weight"] @ torch.cat(heads) + bias)
    return torch.stack(answers)


@pytest.mark.parametrize("shape", LAYERS.values(), ids=LAYERS)
def test_a_layer_is_what_the_formula_says(shape: AttentionNetShape) -> None:
    params = randomised(shape)
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 6, 5)).astype(np.float32))
    outputs = AttentionNet(shape, params)(inputs)
    for row in range(4):
        torch.testing.assert_close(outputs[row], by_hand(shape, params, inputs[row]))


def test_hardmax_is_softmax_at_temperature_zero_and_shares_ties() -> None:
    shape, params = LAYERS["hard"], randomised(LAYERS["hard"])
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(8, 6, 5)).astype(np.float32))
    sharp = {**params, "query.weight": 1e4 * params["query.weight"]}
    soft = AttentionNet(replace(shape, kind="softmax"), sharp)(inputs)
    torch.testing.assert_close(AttentionNet(shape, params)(inputs), soft, atol=1e-4, rtol=1e-4)
    equal = torch.ones(1, 3, 5)
    torch.testing.assert_close(
        AttentionNet(shape, params)(equal), by_hand(shape, params, equal[0])[None]
    )


def as_torch(shape: EncoderShape, params: dict[str, Tensor]) -> nn.TransformerEncoder:
    """The same weights in torch's own encoder."""
    heads = shape.layers[0].heads
    layer = nn.TransformerEncoderLayer(
        shape.width, heads, shape.ffn, dropout=0.0, batch_first=True, norm_first=shape.norm_first
    )
    last = nn.LayerNorm(shape.width) if shape.norm_first else None
    encoder = nn.TransformerEncoder(layer, len(shape.layers), last, enable_nested_tensor=False)
    names = {
        "qkv.": "self_attn.in_proj_",
        "out.": "self_attn.out_proj.",
        "up.": "linear1.",
        "down.": "linear2.",
    }
    state = {}
    for name, value in params.items():
        if name.startswith(("layers.", "norm.")):
            for ours, theirs in names.items():
                name = name.replace(ours, theirs)
            state[name] = value
    encoder.load_state_dict(state)
    return encoder


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("keys", ["all", "earlier"])
def test_the_plain_encoder_is_torchs(norm_first: bool, keys: str) -> None:
    sizes: Any = {"token_dim": 3, "outputs": 2, "width": 8, "heads": 2, "layers": 2, "ffn": 12}
    shape = EncoderShape.plain(**sizes, norm_first=norm_first, keys=keys, positions=7)
    params = randomised(shape)
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 6, 3)).astype(np.float32))
    stream = inputs @ params["into.weight"].T + params["into.bias"] + params["positions"][:6]
    mask = nn.Transformer.generate_square_subsequent_mask(6) if keys == "earlier" else None
    theirs = as_torch(shape, params)(stream, mask=mask)
    theirs = theirs @ params["readout.weight"].T + params["readout.bias"]
    torch.testing.assert_close(EncoderNet(shape, params)(inputs), theirs, atol=1e-4, rtol=1e-4)


def test_the_papers_encoder_averages_modules_and_scales_to_length() -> None:
    """w modules of torch's multi-head attention, averaged; L2 normalisation times a number."""
    shape = EncoderShape.paper(token_dim=6, rank=3, modules=2, ffn=10)
    assert shape.layers[0].heads == 4
    params = randomised(shape)
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 5, 6)).astype(np.float32))
    weight, bias = params["layers.0.qkv.weight"], params["layers.0.qkv.bias"]
    attended = torch.zeros_like(inputs)
    for module in range(2):
        rows = [part * 12 + module * 6 + i for part in range(3) for i in range(6)]
        attention = nn.MultiheadAttention(6, 2, batch_first=True)
        out = params["layers.0.out.weight"][:, module * 6 : module * 6 + 6]
        attention.load_state_dict(
            {
                "in_proj_weight": weight[rows],
                "in_proj_bias": bias[rows],
                "out_proj.weight": out,
                "out_proj.bias": params["layers.0.out.bias"],
            }
        )
        attended = attended + attention(inputs, inputs, inputs)[0] / 2

    def norm(tokens: Tensor, name: str) -> Tensor:
        return nn.functional.normalize(tokens, dim=-1) * params[f"layers.0.{name}.weight"]

    stream = norm(inputs + attended, "norm1")
    hidden = torch.relu(stream @ params["layers.0.up.weight"].T + params["layers.0.up.bias"])
    inner = hidden @ params["layers.0.down.weight"].T + params["layers.0.down.bias"]
    torch.testing.assert_close(
        EncoderNet(shape, params)(inputs), norm(stream + inner, "norm2"), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("modules", [1, 4])
def test_parameters_do_not_depend_on_the_rank(modules: int) -> None:
    counts = {
        EncoderShape.paper(token_dim=16, rank=rank, modules=modules, ffn=8).params()["attention"]
        for rank in (1, 2, 4, 8, 16)
    }
    assert counts == {modules * (4 * 16**2 + 3 * 16) + 16}


def test_the_last_token_can_be_kept_from_being_a_key() -> None:
    shape = replace(EncoderShape.paper(token_dim=4, rank=2, ffn=0), keys="others")
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 5, 4)).astype(np.float32))
    changed = inputs.clone()
    changed[:, -1] += 1
    net = EncoderNet(shape, randomised(shape))
    assert torch.equal(net(inputs)[:, :-1], net(changed)[:, :-1])
    assert not torch.equal(net(inputs)[:, -1], net(changed)[:, -1])


def test_networks_come_back_from_the_disk(tmp_path: Path) -> None:
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 6, 5)).astype(np.float32))
    layer = AttentionNet(LAYER, seed=3)
    layer.save_pretrained(tmp_path / "layer")
    assert torch.equal(AttentionNet.from_pretrained(tmp_path / "layer")(inputs), layer(inputs))
    encoder = EncoderNet(EncoderShape.paper(token_dim=5, rank=5, ffn=3), seed=1)
    encoder.save_pretrained(tmp_path / "encoder")
    assert torch.equal(EncoderNet.from_pretrained(tmp_path / "encoder")(inputs), encoder(inputs))
    with pytest.raises(InputError, match="holds no attention layer"):
        AttentionNet.from_pretrained(tmp_path / "encoder")
    with pytest.raises(InputError, match="holds no class-token network"):
        ClassTokenNet.from_pretrained(tmp_path / "encoder")


BAD = [
    (lambda: EncoderShape.paper(token_dim=8, rank=3), "rank 3 cannot share a width of 8"),
    (lambda: EncoderShape.paper(token_dim=8, rank=16), "rank 16 cannot share"),
    (lambda: EncoderShape.paper(token_dim=8, rank=8, outputs=9), "outputs are no more"),
    (lambda: replace(EncoderShape.paper(token_dim=8, rank=8), modules=3), "over 3 modules"),
    (lambda: replace(LAYER, kind="max"), "'softmax' or 'hardmax'"),
    (lambda: replace(LAYER, values="scalar"), "scalar values keep the dimension"),
    (lambda: AttentionNet(LAYER)(torch.zeros(2, 6, 4)), "the layer takes 5"),
    (lambda: AttentionNet(LAYER)(torch.zeros(2, 1, 5)), "at least one key"),
    (lambda: AttentionNet(LAYERS["position bias"])(torch.zeros(2, 9, 5)), "has 6 positions"),
    (
        lambda: EncoderNet(EncoderShape.paper(token_dim=8, rank=8))(torch.zeros(2, 6, 4)),
        "the encoder takes 8",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_impossible_networks_and_inputs_are_refused(make, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        make()
