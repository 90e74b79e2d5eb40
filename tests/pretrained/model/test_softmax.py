"""Attention of one token, written out, is that of torch; models use it and say the same."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from small_models import measured, shrunk
from torch.nn.functional import scaled_dot_product_attention

from headwise.pretrained import Budget, apply_plan, make_plan
from headwise.pretrained.model.attention import CompressedAttention
from headwise.pretrained.model.softmax import attention_function, one_query_attention
from headwise.pretrained.plan.shapes import LayerShape, full_shape


@pytest.mark.parametrize("hide", ["nothing", "bool", "float"])
@pytest.mark.parametrize(("heads", "groups"), [(6, 2), (3, 3), (4, 1)])
def test_one_query_reads_what_torchs_attention_reads(heads: int, groups: int, hide: str) -> None:
    draw = torch.Generator().manual_seed(heads)
    query, key = (torch.randn(2, n, t, 8, generator=draw) for n, t in ((heads, 1), (groups, 7)))
    value = torch.randn(2, groups, 7, 5, generator=draw)
    seen = torch.rand(2, 1, 1, 7, generator=draw) < 0.6
    seen[..., 0] = True
    mask = {"nothing": None, "bool": seen, "float": torch.zeros_like(seen, dtype=torch.float32)}[
        hide
    ]
    if hide == "float":
        mask = mask.masked_fill(~seen, float("-inf"))
    found, weights = one_query_attention(None, query, key, value, mask, scaling=0.3)
    expected = scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(found, expected.transpose(1, 2))
    assert weights is None


def test_it_is_used_for_one_token_where_torchs_would_be() -> None:
    one, two = torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 2, 4)
    sdpa, eager = (SimpleNamespace(_attn_implementation=name) for name in ("sdpa", "eager"))
    assert attention_function(sdpa, {}, one, True) is one_query_attention
    for config, options, query, plain in (
        (eager, {}, one, True), (sdpa, {"output_attentions": True}, one, True),
        (sdpa, {}, two, True), (sdpa, {}, one, False),
    ):  # fmt: skip
        assert attention_function(config, options, query, plain) is not one_query_attention


@torch.no_grad()
def test_a_padded_batch_goes_on_as_each_of_its_texts_alone() -> None:
    model, material, measurement = measured("llama")
    smaller = shrunk(model, material, "parameters", 0.5, measurement).model
    texts = [torch.tensor([[5, 9, 17, 40, 8]]), torch.tensor([[33, 4, 61]])]
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    alone = [smaller.generate(t, attention_mask=torch.ones_like(t), **options) for t in texts]
    both = torch.cat([texts[0], torch.nn.functional.pad(texts[1], (2, 0))])
    mask = torch.tensor([[1] * 5, [0, 0, 1, 1, 1]])
    together = smaller.generate(both, attention_mask=mask, **options)
    assert torch.equal(together[0], alone[0][0])
    assert torch.equal(together[1, 2:], alone[1][0])


@torch.no_grad()
@pytest.mark.parametrize("family", ["llama", "gpt2", "phi", "mistral", "bart"])
def test_heads_of_unequal_sizes_at_once_are_those_one_after_the_other(family: str) -> None:
    model, material, measurement = measured(family)
    plan = make_plan(measurement, Budget(0.5))
    layers = tuple(
        LayerShape(
            groups=tuple(
                replace(group, qk_dim=(8, 4, 6)[(i + layer) % 3], v_dim=(3, 8)[i % 2])
                for i, group in enumerate(full_shape(site).groups)
            )
        )
        for layer, site in enumerate(measurement.sites)
    )
    smaller = apply_plan(model, measurement, replace(plan, layers=layers)).eval()
    reduced = [m for m in smaller.modules() if isinstance(m, CompressedAttention)]
    assert any(module.heads_at_once is not None for module in reduced)
    inputs = {k: v[:2, :12] for k, v in material.held_out[0].items()}
    name = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    ids = inputs[name]
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    both = []
    for way in ("sdpa", "eager"):
        smaller.set_attn_implementation(way)
        options = inputs | ({} if name == "decoder_input_ids" else {"attention_mask": mask[:, :-1]})
        cache = smaller(**options | {name: ids[:, :-1]}, use_cache=True).past_key_values
        if name == "input_ids":
            options = {"attention_mask": mask}
        both.append(smaller(**options | {name: ids[:, -1:]}, past_key_values=cache).logits)
    torch.testing.assert_close(both[0], both[1], atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_many_texts_together_are_each_of_them_alone(family: str) -> None:
    """Heads of unequal sizes are put side by side in other ways if there are many tokens."""
    model, _, measurement = measured(family)
    plan = make_plan(measurement, Budget(0.5))
    layers = tuple(
        LayerShape(
            groups=tuple(
                replace(group, v_dim=(3, 8, 5)[i % 3])
                for i, group in enumerate(full_shape(site).groups)
            ),
            padded=True,
        )
        for site in measurement.sites
    )
    smaller = apply_plan(model, measurement, replace(plan, layers=layers)).eval()
    texts = torch.randint(4, 98, (8, 40), generator=torch.Generator().manual_seed(7))
    alone = torch.cat([smaller(input_ids=text[None]).logits for text in texts])
    torch.testing.assert_close(smaller(input_ids=texts).logits, alone, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_models_that_take_turns_do_not_mix_up_their_angles() -> None:
    """All layers of a pass share a table of angles, and another model's pass has another."""
    plans = [(measured(name), Budget(0.5, "cache")) for name in ("llama", "phi")]
    models = [
        apply_plan(known.model, known.measurement, make_plan(known.measurement, budget)).eval()
        for known, budget in plans
    ]
    ids = torch.tensor([[5, 9, 17, 40, 8]])
    whole = [model(input_ids=ids).logits for model in models]
    caches = [model(input_ids=ids[:, :1], use_cache=True).past_key_values for model in models]
    for place in range(1, 5):
        for model, cache, expected in zip(models, caches, whole, strict=True):
            found = model(input_ids=ids[:, place : place + 1], past_key_values=cache).logits
            torch.testing.assert_close(found[:, 0], expected[:, place], atol=1e-5, rtol=1e-4)


def test_a_model_used_for_inference_still_has_gradients() -> None:
    model, material, measurement = measured("llama")
    smaller = shrunk(model, material, "cache", 0.5, measurement).model.eval()
    ids = torch.tensor([[5]])
    with torch.inference_mode():
        smaller(input_ids=ids)
    smaller(input_ids=ids).logits.sum().backward()
    assert all(p.grad is not None for n, p in smaller.named_parameters() if "v_proj" in n)
