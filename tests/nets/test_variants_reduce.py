"""Wherever a variant must be plain attention it is, whatever the sizes."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from variant_nets import drawn, reduced

from headwise.nets import AttentionShape, PooledShape
from headwise.nets.sequence import HeadPooling

SIZES = st.integers(1, 6)


def network(layer: AttentionShape, variant: str) -> PooledShape:
    plain = PooledShape.of_heads(token_dim=3, heads=layer.heads, width=7)
    return replace(plain, embed_dim=5, pooling=HeadPooling(layer=layer, variant=variant))


def outputs(shape: PooledShape, params: dict[str, torch.Tensor], length: int) -> torch.Tensor:
    noise = torch.Generator().manual_seed(length)
    return shape.forward(params, torch.randn(1, 3, length, 3, generator=noise).double())


@settings(max_examples=80, deadline=None)
@given(
    heads=SIZES, qk_dim=SIZES, v_dim=SIZES, length=st.integers(1, 9), shared=st.integers(0, 5),
    more=st.integers(0, 4), seed=st.integers(0, 99),
    title=st.sampled_from(
        ["grouped", "talking", "banded", "window", "top-k", "mixture", "gated", "differential"]
    ),
)  # fmt: skip
def test_a_variant_is_plain_where_it_must_be(
    heads, qk_dim, v_dim, length, shared, more, seed, title
):
    shared = min(shared, heads - 1)
    numbers = {
        "grouped": f":{heads}", "banded": ":1", "window": f":{length + more}",
        "top-k": f":{length + 1 + more}", "mixture": f":{shared}:{heads - shared}",
    }  # fmt: skip
    layer = AttentionShape(heads=heads, qk_dim=qk_dim, v_dim=v_dim)
    shape, plain = network(layer, title + numbers.get(title, "")), network(layer, "plain")
    params = reduced(drawn(shape.parameter_shapes(), seed), ["layers.0"])
    if title == "gated":  # σ(x W) = 1 to the last digit
        token = params["class_token"][0]
        params["layers.0.gate.weight"] = (40 * token / (token @ token)).expand(1, heads * v_dim, -1)
    sizes = plain.parameter_shapes()  # of a differential head the first map
    own = {name: params[name][:, : size[0]] for name, size in sizes.items()}
    gap = outputs(shape, params, length) - outputs(plain, own, length)
    assert gap.abs().max() < 1e-6


@settings(max_examples=40, deadline=None)
@given(groups=SIZES, shares=SIZES, qk_dim=SIZES, v_dim=SIZES, length=st.integers(1, 9))
def test_grouped_heads_are_plain_ones_with_equal_maps(groups, shares, qk_dim, v_dim, length):
    layer = AttentionShape(heads=groups * shares, qk_dim=qk_dim, v_dim=v_dim)
    shape, plain = network(layer, f"grouped:{groups}"), network(layer, "plain")
    params = drawn(shape.parameter_shapes(), length)
    own = dict(params)
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        maps = params[f"layers.0.{name}"].unflatten(1, (groups, -1))
        own[f"layers.0.{name}"] = maps.repeat_interleave(shares, 1).flatten(1, 2)
    gap = outputs(shape, params, length) - outputs(plain, own, length)
    assert gap.abs().max() < 1e-6
