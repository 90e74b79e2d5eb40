"""The folded network is the paper's: same outputs and gradients as torch's own attention."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from headwise.core.errors import InputError
from headwise.nets import AttentionShape, ClassTokenNet, ClassTokenShape, MLPShape, stack

SIZES = {"token_dim": 3, "heads": 2, "head_dim": 5, "width": 7}


def reference(net: ClassTokenNet, inputs: Tensor) -> Tensor:
    """The same weights in torch.nn.MultiheadAttention over all T + 1 tokens."""
    shape, p = net.shape, dict(net.named_parameters())
    hidden = inputs
    for index in range(len(shape.embed.widths)):
        hidden = functional.linear(hidden, p[f"embed.{index}.weight"], p[f"embed.{index}.bias"])
        if index == 0 and shape.positions and shape.position_kind == "concat":
            hidden = hidden + p["positions"][: inputs.shape[1]]
        hidden = functional.relu(hidden)
    last = len(shape.embed.widths)
    tokens = functional.linear(hidden, p[f"embed.{last}.weight"], p[f"embed.{last}.bias"])
    if shape.positions and shape.position_kind == "add":
        tokens = tokens + p["positions"][: inputs.shape[1]]
    stream = torch.cat([tokens, p["class_token"].expand(len(inputs), 1, -1)], 1)
    for index, layer in enumerate(shape.layers):
        attention = nn.MultiheadAttention(shape.embed_dim, layer.heads, batch_first=True).double()
        w = {part: p[f"layers.{index}.{part}.weight"] for part in ("query", "key", "value", "out")}
        b = {part: p[f"layers.{index}.{part}.bias"] for part in ("query", "key", "value", "out")}
        scale = 1.0 if shape.scaled else layer.qk_dim**0.5
        weights = {
            "in_proj_weight": torch.cat([w["query"] * scale, w["key"], w["value"]]),
            "in_proj_bias": torch.cat([b["query"] * scale, b["key"], b["value"]]),
            "out_proj.weight": w["out"],
            "out_proj.bias": b["out"],
        }
        keys = stream if shape.class_token_is_key else stream[:, :-1]
        mixed, _ = torch.func.functional_call(
            attention, weights, (stream, keys, keys), {"need_weights": False}
        )
        stream = stream + mixed if shape.residual else mixed
        if shape.norm:
            stream = functional.layer_norm(
                stream,
                (shape.embed_dim,),
                p[f"layers.{index}.norm.weight"],
                p[f"layers.{index}.norm.bias"],
            )
    hidden = stream[:, -1]
    for index in range(len(shape.readout.widths)):
        weight, bias = p[f"readout.{index}.weight"], p[f"readout.{index}.bias"]
        hidden = functional.gelu(functional.linear(hidden, weight, bias))
    last = len(shape.readout.widths)
    return functional.linear(hidden, p[f"readout.{last}.weight"], p[f"readout.{last}.bias"])


def random_net(shape: ClassTokenShape, seed: int = 0) -> ClassTokenNet:
    """All parameters random, biases too, so that none can be forgotten unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    sizes = shape.parameter_shapes()
    params = {
        name: torch.randn(size, generator=generator, dtype=torch.float64) * 0.4
        for name, size in sizes.items()
    }
    return ClassTokenNet(shape, params)


SHAPES = [
    replace(
        ClassTokenShape.standard(layers=layers, residual=residual, norm=residual, **SIZES),
        class_token_is_key=key,
        scaled=scaled,
    )
    for layers, residual, key, scaled in itertools.product(
        (1, 2, 3), (False, True), (False, True), (False, True)
    )
] + [
    replace(ClassTokenShape.standard(**SIZES), positions=9, position_kind=kind)
    for kind in ("add", "concat")
]


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients_equal_multi_head_attention(shape: ClassTokenShape) -> None:
    net = random_net(shape)
    inputs = torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours, theirs = net(inputs), reference(net, inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    names, params = zip(*net.named_parameters(), strict=True)
    ours_grad = torch.autograd.grad(ours.sum(), params, materialize_grads=True)
    their_grad = torch.autograd.grad(theirs.sum(), params, materialize_grads=True)
    for name, mine, yours in zip(names, ours_grad, their_grad, strict=True):
        torch.testing.assert_close(mine, yours, rtol=1e-9, atol=1e-10, msg=lambda m, n=name: n + m)


def test_free_head_dimensions_and_depths_have_the_shapes_they_say() -> None:
    shape = ClassTokenShape(
        token_dim=2,
        embed_dim=6,
        layers=(AttentionShape(heads=3, qk_dim=1, v_dim=4),),
        embed=MLPShape(widths=(5, 4), activation="relu"),
        readout=MLPShape(widths=(), activation="relu"),
        outputs=2,
    )
    net = ClassTokenNet(shape)
    assert net(torch.zeros(7, 3, 2)).shape == (7, 2)
    assert shape.params()["total"] == sum(p.numel() for p in net.parameters())
    assert shape.params()["total"] == shape.params()["mlp"] + shape.params()["attention"]


def test_stacked_members_are_the_single_networks() -> None:
    shape = ClassTokenShape.standard(**SIZES)
    nets = [random_net(shape, seed) for seed in range(3)]
    inputs = torch.randn(3, 4, 9, 3, generator=torch.Generator().manual_seed(1)).double()
    together = shape.forward(stack([dict(net.named_parameters()) for net in nets]), inputs)
    for net, row, output in zip(nets, inputs, together, strict=True):
        torch.testing.assert_close(net(row), output, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("key", [True, False])
def test_attention_weights_are_softmax_of_query_times_key(key: bool) -> None:
    shape = replace(ClassTokenShape.standard(**SIZES), class_token_is_key=key)
    net = random_net(shape)
    p = dict(net.named_parameters())
    inputs = torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    hidden = functional.relu(functional.linear(inputs, p["embed.0.weight"], p["embed.0.bias"]))
    tokens = functional.linear(hidden, p["embed.1.weight"], p["embed.1.bias"])
    tokens = torch.cat([tokens, p["class_token"].expand(4, 1, -1)], 1) if key else tokens
    query = p["layers.0.query.weight"] @ p["class_token"] + p["layers.0.query.bias"]
    keys = functional.linear(tokens, p["layers.0.key.weight"], p["layers.0.key.bias"])
    scores = torch.einsum("hq,bthq->bth", query.view(2, 5), keys.view(4, -1, 2, 5)) / 5**0.5
    wanted = torch.softmax(scores, 1)[:, :9]
    torch.testing.assert_close(net.attention_weights(inputs), wanted, rtol=1e-10, atol=1e-12)


def test_a_saved_network_comes_back_equal(tmp_path: Path) -> None:
    net = ClassTokenNet(ClassTokenShape.standard(**SIZES), seed=3)
    net.save_pretrained(tmp_path / "net")
    again = ClassTokenNet.from_pretrained(tmp_path / "net")
    assert again.shape == net.shape
    inputs = torch.randn(2, 5, 3)
    assert torch.equal(net(inputs), again(inputs))
    assert {file.name for file in (tmp_path / "net").iterdir()} == {
        "config.json",
        "model.safetensors",
    }


def test_damaged_or_missing_networks_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no"):
        ClassTokenNet.from_pretrained(tmp_path)
    ClassTokenNet(ClassTokenShape.standard(**SIZES)).save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match="damaged"):
        ClassTokenNet.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"heads": 0}, "heads is 0"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"width": 0}, "width"),
        ({"layers": 0}, "layers is 0"),
        ({"token_dim": 0}, "token_dim is 0"),
    ],
)
def test_impossible_shapes_are_refused(sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ClassTokenShape.standard(**{**SIZES, **sizes})


def test_inputs_that_do_not_fit_are_refused() -> None:
    net = ClassTokenNet(replace(ClassTokenShape.standard(**SIZES), positions=4))
    with pytest.raises(InputError, match="tokens have 2 numbers"):
        net(torch.zeros(1, 3, 2))
    with pytest.raises(InputError, match="5 tokens; the network has 4 positions"):
        net(torch.zeros(1, 5, 3))
