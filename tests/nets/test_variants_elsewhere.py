"""Variants of a head against other programs, and linear attention in its recurrent form."""

from dataclasses import replace
from math import sqrt

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from variant_nets import HEADS, LAYER, LENGTH, RANK, SIZE, decoder, drawn

from headwise.nets.variants import find_variant
from headwise.nets.variants.differential import DifferentialHeads
from headwise.nets.variants.mixing import mix_heads

x_transformers = pytest.importorskip("x_transformers")


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("plain", {}),
        ("grouped:2", {"kv_heads": 2}),
        ("grouped:1", {"one_kv_head": True}),
        ("talking", {"pre_talking_heads": True, "post_talking_heads": True}),
        ("top-k:3", {"sparse_topk": 3}),
    ],
)
def test_it_is_what_x_transformers_computes(variant, options):
    theirs = x_transformers.x_transformers.Attention(
        dim=12, heads=HEADS, dim_head=RANK, value_dim_head=RANK, causal=True, **options
    ).double()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    kind, layer = find_variant(variant), replace(LAYER, v_dim=RANK)
    stream = torch.randn(1, 2, LENGTH, 12, generator=torch.manual_seed(11)).double()
    queries, keys, values = kind.maps(layer)

    def heads(linear: torch.nn.Linear, count: int) -> Tensor:
        return (stream @ linear.weight.T).unflatten(-1, (count, RANK)).transpose(2, 3)

    params = {
        f"layers.0.talk_{ours}": talk.weight[None, :, :, 0, 0]
        for ours, talk in (
            ("scores", theirs.attend.pre_softmax_talking_heads),
            ("weights", theirs.attend.post_softmax_talking_heads),
        )
        if variant == "talking"
    }
    seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()[None]
    if variant == "talking":  # there, P_l is the identity plus the weight
        params["layers.0.talk_scores"] = params["layers.0.talk_scores"] + torch.eye(HEADS)
    # There, head i shares the keys of group i mod groups: put a group's heads side by side.
    order = torch.arange(HEADS).view(-1, keys).T.flatten()
    shared = order.argsort()
    mixed = mix_heads(
        kind, params, "layers.0", stream, heads(theirs.to_q, queries)[:, :, order] / sqrt(RANK),
        heads(theirs.to_k, keys), heads(theirs.to_v, values), seen,
    )  # fmt: skip
    ours = mixed[:, :, shared].transpose(2, 3).flatten(3) @ theirs.to_out.weight.T
    wanted = theirs(stream[0])  # its softmax is in single precision
    assert (ours[0] - wanted).abs().max() < 1e-6 * wanted.abs().max()


def test_differential_heads_are_what_diff_llama_computes():
    """transformers' program of the paper, without the norm of the heads that ours leave out.

    There, four heads are two differential ones; the values of one are those of two heads.
    """
    diffllama = pytest.importorskip("transformers.models.diffllama.modeling_diffllama")
    config = diffllama.DiffLlamaConfig(
        hidden_size=12, num_attention_heads=4, num_key_value_heads=4, head_dim=RANK,
        attn_implementation="eager", attention_bias=False,
    )  # fmt: skip
    theirs = diffllama.DiffLlamaAttention(config, layer_idx=2).double()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    theirs.groupnorm = torch.nn.Identity()
    stream = torch.randn(2, LENGTH, 12, generator=torch.manual_seed(14)).double()
    hidden = torch.ones(LENGTH, LENGTH).triu(1).double() * -1e30
    turn = torch.ones(1, LENGTH, RANK).double(), torch.zeros(1, LENGTH, RANK).double()
    wanted, _ = theirs(stream, turn, hidden[None, None])

    def heads(linear: torch.nn.Linear) -> Tensor:
        return (stream @ linear.weight.T).unflatten(-1, (4, RANK)).transpose(1, 2)[None]

    vectors = torch.stack([getattr(theirs, f"lambda_{part}") for part in ("q1", "k1", "q2", "k2")])
    mixed = mix_heads(
        DifferentialHeads(), {"layers.2.lambda": vectors[None]}, "layers.2", stream[None],
        heads(theirs.q_proj) / sqrt(RANK), heads(theirs.k_proj),
        torch.cat(heads(theirs.v_proj).chunk(2, 2), -1), (hidden == 0)[None],
    )  # fmt: skip
    ours = mixed[0].transpose(1, 2).flatten(2) @ theirs.o_proj.weight.T
    ours = ours * (1 - theirs.lambda_init)
    assert (ours - wanted).abs().max() < 1e-5 * wanted.abs().max()  # its λ is in single precision


def test_linear_attention_is_its_recurrent_form():
    """The O(T) form of its paper: sums of φ(k) vᵀ and of φ(k), token after token."""
    shape = decoder("linear", positions="none")
    params = drawn(shape.parameter_shapes(), 12)
    stream = torch.randn(1, 1, LENGTH, 12, generator=torch.manual_seed(13)).double()
    found = shape._attend(params, "layers.0", LAYER, stream)[0, 0]
    whole = params["layers.0.qkv.weight"][0]
    query, key, value = (stream[0, 0] @ whole.T).split([HEADS * RANK] * 2 + [HEADS * SIZE], -1)
    outputs = []
    for i in range(HEADS):
        memory, mass, rows = torch.zeros(RANK, SIZE).double(), torch.zeros(RANK).double(), []
        for t in range(LENGTH):
            q, k = (u[t, i * RANK : (i + 1) * RANK] for u in (query / sqrt(RANK), key))
            k = functional.elu(k) + 1
            memory = memory + torch.outer(k, value[t, i * SIZE : (i + 1) * SIZE])
            mass, up = mass + k, functional.elu(q) + 1
            rows.append(up @ memory / (up @ mass))
        outputs.append(torch.stack(rows))
    wanted = torch.cat(outputs, 1) @ params["layers.0.out.weight"][0].T
    assert (found - wanted).abs().max() < 1e-10
