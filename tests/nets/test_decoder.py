"""Decoders, against an independent implementation that knows nothing of members or blocks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import InputError
from headwise.core.spec import from_data, to_data
from headwise.nets import AttentionShape, DecoderNet, DecoderShape, stack

LAYERS = (
    AttentionShape(heads=3, qk_dim=2, v_dim=5),
    AttentionShape(heads=1, qk_dim=8, v_dim=3),
    AttentionShape(heads=4, qk_dim=6, v_dim=6),
)
TEXT = DecoderShape(vocabulary=11, width=12, layers=LAYERS, ffn=20, length=100)
REAL = replace(TEXT, vocabulary=0, token_dim=3, outputs=2)
SHAPES = {
    "learned": TEXT,
    "rope": replace(TEXT, positions="rope"),
    "none": replace(TEXT, positions="none"),
    "rope, qk-norm": replace(TEXT, positions="rope", qk_norm=True),
    "learned, qk-norm": replace(TEXT, qk_norm=True),
    "attention only": replace(TEXT, ffn=0),
    "real": REAL,
}


def randomised(shape: DecoderShape, seed: int = 0) -> dict[str, Tensor]:
    """Weights none of which is zero or one, so that nothing can be forgotten unnoticed."""
    rng = np.random.default_rng(seed)
    return {
        name: torch.from_numpy(rng.normal(0, 0.5, size).astype(np.float32))
        for name, size in shape.parameter_shapes().items()
    }


def some_inputs(shape: DecoderShape, length: int = 70, batch: int = 2) -> Tensor:
    rng = np.random.default_rng(1)
    if shape.vocabulary:
        return torch.from_numpy(rng.integers(0, shape.vocabulary, (batch, length)))
    return torch.from_numpy(rng.normal(size=(batch, length, 3)).astype(np.float32))


def rms(x: Tensor, gain: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * gain


def turned(x: Tensor) -> Tensor:
    """RoPE as a product of complex numbers."""
    half = x.shape[-1] // 2
    pairs = torch.complex(x[..., :half].double(), x[..., half:].double())
    speed = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * speed
    pairs = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((pairs.real, pairs.imag), -1).float()


def by_torch(shape: DecoderShape, params: dict[str, Tensor], inputs: Tensor) -> Tensor:
    """The decoder as one would write it for a single network."""
    x = params["table"][inputs] if shape.vocabulary else inputs @ params["into.weight"].T
    if shape.positions == "learned":
        x = x + params["positions"][: x.shape[1]]
    for index, layer in enumerate(shape.layers):
        mine = {
            k.split(".", 2)[2]: v for k, v in params.items() if k.startswith(f"layers.{index}.")
        }
        y = rms(x, mine["norm1.weight"])
        sizes = [layer.heads * layer.qk_dim] * 2 + [layer.heads * layer.v_dim]
        q, k, v = (
            (y @ weight.T).unflatten(-1, (layer.heads, -1)).transpose(1, 2)
            for weight in mine["qkv.weight"].split(sizes)
        )
        if shape.qk_norm:
            q = rms(q, mine["query_norm.weight"][:, None])
            k = rms(k, mine["key_norm.weight"][:, None])
        if shape.positions == "rope":
            q, k = turned(q), turned(k)
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + heads.transpose(1, 2).flatten(2) @ mine["out.weight"].T
        if shape.ffn:
            hidden = rms(x, mine["norm2.weight"]) @ mine["up.weight"].T
            x = x + functional.gelu(hidden) @ mine["down.weight"].T
    return rms(x, params["norm.weight"]) @ params.get("table", params.get("readout.weight")).T  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_decoder_is_the_one_that_torch_computes(shape: DecoderShape) -> None:
    params, inputs = randomised(shape), some_inputs(shape)
    outputs = DecoderNet(shape, params)(inputs)
    torch.testing.assert_close(outputs, by_torch(shape, params, inputs), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_no_token_sees_a_later_one(shape: DecoderShape) -> None:
    """Changing token t changes outputs from t on, and no earlier one, also across blocks."""
    net, inputs = DecoderNet(shape, randomised(shape)), some_inputs(shape, 80, 1)
    for place in (1, 40, 63, 64, 79):
        other = inputs.clone()
        other[0, place] = (inputs[0, place] + 1) % 11
        before, after = net(inputs)[0], net(other)[0]
        torch.testing.assert_close(before[:place], after[:place], atol=1e-5, rtol=1e-5)
        assert ((before[place:] - after[place:]).abs().amax(-1) > 1e-5).all()


def test_without_positions_order_is_known_by_the_mask_alone() -> None:
    """The last token of one layer sees a set: swapping two earlier tokens changes nothing."""
    shape = replace(TEXT, positions="none", layers=LAYERS[:1])
    net, inputs = DecoderNet(shape, randomised(shape)), some_inputs(shape)
    swapped = inputs[:, [3, 1, 2, 0, *range(4, 70)]]
    torch.testing.assert_close(net(inputs)[:, -1], net(swapped)[:, -1], atol=1e-5, rtol=1e-5)


def test_rope_scores_depend_on_distance_alone() -> None:
    """With one layer, prefixing a sequence with what no head can use moves no relative score."""
    from headwise.nets.positions import rotate, rotation

    rng = np.random.default_rng(2)
    q, k = (torch.from_numpy(rng.normal(size=(1, 8))).expand(50, 8) for _ in range(2))
    scores = rotate(q, rotation(50, 8, q.device)) @ rotate(k, rotation(50, 8, q.device)).T
    for distance in (0, 1, 7, 30):
        along = torch.diagonal(scores, -distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_parameters_are_what_the_formula_says(shape: DecoderShape) -> None:
    wanted = sum(12 * layer.heads * (2 * layer.qk_dim + 2 * layer.v_dim) for layer in LAYERS)
    assert shape.params()["attention"] == wanted
    weights = DecoderNet(shape).state_dict()
    assert shape.params()["total"] == sum(value.numel() for value in weights.values())
    matrices = [v for k, v in weights.items() if ".qkv." in k or ".out." in k]
    assert sum(value.numel() for value in matrices) == wanted


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_members_are_what_they_are_alone(shape: DecoderShape) -> None:
    params = [randomised(shape, seed) for seed in range(3)]
    inputs = some_inputs(shape)
    together = shape.forward(stack(params), inputs.unsqueeze(0))
    for member, alone in zip(together, params, strict=True):
        torch.testing.assert_close(member, DecoderNet(shape, alone)(inputs), atol=1e-4, rtol=1e-4)


def test_initial_weights_are_a_function_of_shape_and_seed() -> None:
    first, again, other = (TEXT.initial_params(seed) for seed in (3, 3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["table"], other["table"])
    deep = replace(TEXT, width=64, layers=8 * LAYERS[:1])
    assert 0.5 < DecoderNet(deep, seed=0)(some_inputs(TEXT)).std() < 2  # whatever the depth


def test_a_decoder_comes_back_from_the_disk(tmp_path: Path) -> None:
    shape = SHAPES["rope, qk-norm"]
    net = DecoderNet(shape, randomised(shape))
    net.save_pretrained(tmp_path)
    assert torch.equal(
        DecoderNet.from_pretrained(tmp_path)(some_inputs(shape)), net(some_inputs(shape))
    )
    assert from_data(to_data(shape)) == shape


BAD = [
    (
        lambda: replace(TEXT, positions="rope", layers=(replace(LAYERS[0], qk_dim=3),)),
        "must be even",
    ),
    (lambda: replace(TEXT, positions="sinus"), "'learned', 'rope' or 'none'"),
    (lambda: replace(TEXT, layers=()), "at least one layer"),
    (lambda: replace(TEXT, vocabulary=1), "vocabulary of 2 or more"),
    (lambda: replace(TEXT, vocabulary=0), "a token_dim and outputs"),
    (lambda: replace(TEXT, token_dim=3), "vocabulary of 2 or more"),
    (lambda: replace(TEXT, width=0), "width is 0"),
    (lambda: DecoderNet(TEXT)(some_inputs(TEXT, 101)), "takes up to 100"),
    (lambda: DecoderNet(TEXT)(some_inputs(REAL)[..., 0]), "token numbers"),
    (lambda: DecoderNet(REAL)(some_inputs(REAL)[..., :2]), "the decoder takes 3"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_impossible_decoders_and_inputs_are_refused(make, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        make()
