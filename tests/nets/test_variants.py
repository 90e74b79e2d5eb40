"""Variants of a head: against their formulas, and against plain heads."""

import pytest
import torch
from variant_nets import (
    EVERY,
    HEADS,
    LAYER,
    LENGTH,
    RANK,
    SIZE,
    by_the_formula,
    class_token_net,
    decoder,
    drawn,
    reduced,
)

from headwise.core.errors import InputError
from headwise.nets import ClassTokenShape, DecoderShape, PooledShape
from headwise.nets.variants import VARIANTS, find_variant
from headwise.nets.variants.mixture import MixtureOfHeads
from headwise.nets.variants.pooling import pool_by_full_form, pool_by_heads


@pytest.mark.parametrize("variant", EVERY)
def test_the_class_token_form_is_the_formula(variant):
    shape, params = class_token_net(variant)
    hidden = torch.randn(1, 3, LENGTH, 7, generator=torch.manual_seed(1)).double().relu()
    found = pool_by_heads(shape.pooling.mechanism, LAYER, params, hidden, "embed.1")
    one = {name: value[0] for name, value in params.items()}
    distance = torch.arange(LENGTH - 1, -2, -1.0)[None]
    for index in range(3):
        tokens = hidden[0, index] @ one["embed.1.weight"].T + one["embed.1.bias"]
        stream = torch.cat([tokens, one["class_token"][None]])
        wanted = by_the_formula(variant, one, "layers.0", stream, stream[-1:], distance, LENGTH)
        assert (found[0, index] - wanted[:, 0].flatten()).abs().max() < 1e-10


@pytest.mark.parametrize("variant", EVERY)
def test_the_decoder_is_the_formula(variant):
    shape = decoder(variant, positions="none")
    params = drawn(shape.parameter_shapes(), 2)
    stream = torch.randn(1, 2, LENGTH, 12, generator=torch.manual_seed(3)).double()
    found = shape._attend(params, "layers.1", LAYER, stream)
    one = {name: value[0] for name, value in params.items()}
    place = torch.arange(float(LENGTH))
    distance = place[:, None] - place
    distance[distance < 0] = torch.nan
    for index in range(2):
        tokens = stream[0, index]
        heads = by_the_formula(variant, one, "layers.1", tokens, tokens, distance, shape.length)
        wanted = heads.transpose(0, 1).flatten(1) @ one["layers.1.out.weight"].T
        assert (found[0, index] - wanted).abs().max() < 1e-10


@pytest.mark.parametrize("variant", EVERY)
def test_folding_changes_nothing_and_members_are_independent(variant):
    shape, first = class_token_net(variant, 4)
    _, second = class_token_net(variant, 5)
    both = {name: torch.cat([first[name], second[name]]) for name in first}
    hidden = torch.randn(2, 3, LENGTH, 7, generator=torch.manual_seed(6)).double().relu()
    parts = (shape.pooling.mechanism, LAYER)
    folded = pool_by_heads(*parts, both, hidden, "embed.1")
    assert (folded - pool_by_full_form(*parts, both, hidden, "embed.1")).abs().max() < 1e-10
    alone = pool_by_heads(*parts, second, hidden[1:], "embed.1")
    assert (folded[1:] - alone).abs().max() < 1e-12


PLAIN_AT = [
    "grouped:4", "talking", "banded:1", "window:99", "top-k:99", "mixture:1:3", "mixture:0:4",
    "gated", "differential",
]  # fmt: skip


@pytest.mark.parametrize("variant", PLAIN_AT)
def test_the_class_token_network_reduces_to_plain(variant):
    shape, params = class_token_net(variant, 7)
    params = reduced(params, ["layers.0"])
    token = params["class_token"][0]
    if variant == "gated":  # σ(x W) = 1 to the last digit
        params["layers.0.gate.weight"] = (40 * token / (token @ token)).expand(1, 4 * SIZE, -1)
    plain = ClassTokenShape(
        token_dim=3, embed_dim=11, layers=(LAYER,), embed=shape.embed, readout=shape.readout
    )
    inputs = torch.randn(1, 6, LENGTH, 3, generator=torch.manual_seed(8)).double()
    sizes = plain.parameter_shapes()  # of a differential head the first map
    own = {name: params[name][:, : size[0]] for name, size in sizes.items()}
    gap = shape.forward(params, inputs) - plain.forward(own, inputs)
    assert gap.abs().max() < 1e-6


@pytest.mark.parametrize("variant", PLAIN_AT)
def test_the_decoder_reduces_to_plain(variant):
    shape, plain = decoder(variant), decoder("plain")
    params = reduced(drawn(shape.parameter_shapes(), 9), ["layers.0", "layers.1"])
    own = {name: params[name] for name in plain.parameter_shapes()}
    for name in ("layers.0", "layers.1"):
        if variant == "differential":
            parts = params[f"{name}.qkv.weight"].split([HEADS * RANK] * 4 + [HEADS * SIZE], 1)
            own[f"{name}.qkv.weight"] = torch.cat([parts[0], parts[2], parts[4]], 1)
        if variant == "gated":  # gates of σ(0) = ½: the output map makes up for it
            params[f"{name}.gate.weight"] = torch.zeros(1, HEADS * SIZE, 12).double()
            params[f"{name}.out.weight"] = 2 * own[f"{name}.out.weight"]
    inputs = torch.randn(1, 3, LENGTH, 3, generator=torch.manual_seed(10)).double()
    gap = shape.forward(params, inputs) - plain.forward(own, inputs)
    assert gap.abs().max() < 1e-6


def test_plain_heads_are_the_head_count_papers_network():
    pooled = PooledShape.of_heads(token_dim=4, heads=3)
    paper = ClassTokenShape.standard(token_dim=4, heads=3)
    assert pooled.parameter_shapes() == paper.parameter_shapes()
    ours, theirs = pooled.initial_params(5), paper.initial_params(5)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_variant_has_one_text():
    assert DecoderShape.__dataclass_fields__["attention"].default == "plain"
    assert decoder("banded") == decoder("banded:0")
    for name in VARIANTS:
        assert str(find_variant(str(find_variant(name)))) == str(find_variant(name))


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("bandit", "there is no attention"),
        ("grouped:3", "cannot share 3 groups"),
        ("grouped:0", "cannot share 0 groups"),
        ("grouped:1:2", "not of the form grouped:groups"),
        ("grouped:-1", "not of the form"),
        ("grouped:two", "not of the form"),
        ("grouped:²", "not of the form"),
        ("banded:5", "5 bands need as many heads"),
        ("window:0", "at least 1 token"),
        ("top-k:0", "at least 1 key"),
        ("mixture:4:1", "no mixture"),
        ("mixture:2:0", "no mixture"),
        (None, "attention is a text"),
        (["plain"], "attention is a text"),
    ],
)
def test_a_wrong_variant_gets_a_sentence(variant, words):
    with pytest.raises(InputError, match=words):
        decoder(variant)


def test_more_bands_than_tokens_get_a_sentence():
    shape, params = class_token_net("banded")
    with pytest.raises(InputError, match="4 bands need as many tokens"):
        shape.forward(params, torch.zeros(1, 2, 3, 3).double())


def test_the_balance_loss_is_least_where_the_load_is_even():
    mixture = MixtureOfHeads(shared=1, routed=1)
    spread = torch.eye(3).double().repeat(5, 1)[None, None]  # a third of the tokens each
    even = {"layers.0.route.weight": 9 * torch.eye(3).double()[None]}
    lazy = {"layers.0.route.weight": torch.tensor([[[9.0] * 3, [0.0] * 3, [0.0] * 3]]).double()}
    assert mixture.imbalance(even, "layers.0", spread).item() == pytest.approx(1.0)
    assert mixture.imbalance(lazy, "layers.0", spread).item() == pytest.approx(3.0, rel=1e-3)
