"""A long cache grows without being copied, and is in everything else transformers' own."""

import copy
from typing import Any

import pytest
import torch
from small_models import measured, shrunk
from torch import Tensor
from transformers import DynamicCache

from headwise.pretrained.model.token import growing
from headwise.pretrained.model.token.growing import appended


@pytest.fixture(autouse=True)
def every_cache_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_LONG", 1)
    monkeypatch.setattr(growing, "_LEAST_ROOM", 3)


def tokens(count: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    key, value = (torch.randn(2, 3, count, dim, generator=draw) for dim in (4, 5))
    return key, value


def grown(*, by: Any, cache: Any = None, seeds: range = range(1, 9)) -> Any:
    """A cache of ten tokens and then one more for each seed, appended `by` a function."""
    if cache is None:
        cache = DynamicCache()
        cache.update(*tokens(10, 0), 0)
    for seed in seeds:
        by(cache, *tokens(1, seed), 0)
    return cache


def stock(cache: Any, key: Tensor, value: Tensor, index: int) -> tuple[Tensor, Tensor]:
    return cache.update(key, value, index)  # type: ignore[no-any-return]


def equal(one: Any, other: Any) -> bool:
    pairs = zip(one.layers, other.layers, strict=True)
    return all(
        torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values) for a, b in pairs
    )  # fmt: skip


@torch.no_grad()
def test_it_holds_what_transformers_cache_holds_and_copies_now_and_then() -> None:
    cache, places = DynamicCache(), set()
    cache.update(*tokens(10, 0), 0)
    for seed in range(1, 9):
        appended(cache, *tokens(1, seed), 0)
        places.add(cache.layers[0].keys.data_ptr())
    assert equal(cache, grown(by=stock))
    assert cache.get_seq_length() == 18
    assert len(places) == 2  # ten tokens and room for four; fourteen and room for four


@torch.no_grad()
def test_several_tokens_at_once_are_appended_too() -> None:
    one, other = grown(by=appended), grown(by=stock)
    for by, cache in ((appended, one), (stock, other)):
        by(cache, *tokens(7, 20), 0)
    assert equal(one, other)


@torch.no_grad()
@pytest.mark.parametrize("happens", ["crop", "reorder_cache", "batch_select_indices", "nothing"])
def test_whoever_kept_an_earlier_state_still_has_it(happens: str) -> None:
    cache, reference = grown(by=appended), grown(by=stock)
    kept = cache.layers[0].keys, cache.layers[0].keys.clone()
    for each in (cache, reference):
        if happens == "crop":
            each.crop(-2)
        elif happens != "nothing":
            getattr(each, happens)(torch.tensor([1, 1]))
    grown(by=appended, cache=cache, seeds=range(30, 33))
    grown(by=stock, cache=reference, seeds=range(30, 33))
    assert equal(cache, reference)
    assert torch.equal(*kept)


@torch.no_grad()
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cache: _shallow(cache)])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    cache = grown(by=appended)
    twin = copied(cache)
    grown(by=appended, cache=cache, seeds=range(30, 33))
    grown(by=appended, cache=twin, seeds=range(40, 43))
    assert equal(cache, grown(by=stock, cache=grown(by=stock), seeds=range(30, 33)))
    assert equal(twin, grown(by=stock, cache=grown(by=stock), seeds=range(40, 43)))


def _shallow(cache: Any) -> Any:
    twin = DynamicCache()
    twin.layers = [copy.copy(layer) for layer in cache.layers]
    return twin


def test_gradients_go_through_and_inference_mode_leaves_nothing_that_cannot_be_written() -> None:
    with torch.inference_mode():
        cache = grown(by=appended)
    with torch.no_grad():
        grown(by=appended, cache=cache, seeds=range(9, 12))
        assert equal(cache, grown(by=stock, seeds=range(1, 12)))
    key, value = (part.requires_grad_() for part in tokens(1, 50))
    keys, values = appended(cache, key, value, 0)
    with torch.no_grad():
        grown(by=appended, cache=cache, seeds=range(60, 62))
    (keys.square().sum() + values.sum()).backward()
    assert key.grad is not None
    torch.testing.assert_close(key.grad, 2 * key.detach())


@torch.no_grad()
def test_tokens_of_another_precision_or_batch_are_met_as_transformers_meets_them() -> None:
    cache, reference = grown(by=appended), grown(by=stock)
    key, value = (part.double() for part in tokens(1, 9))
    assert appended(cache, key, value, 0)[0].dtype == stock(reference, key, value, 0)[0].dtype
    with pytest.raises(RuntimeError):
        appended(cache, key[:1], value[:1], 0)


@torch.no_grad()
@pytest.mark.parametrize("family", ["llama", "gpt2", "phi", "mistral", "bart", "t5"])
@pytest.mark.parametrize("beams", [1, 3])
def test_models_write_the_same(family: str, beams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, material, measurement = measured(family)
    smaller = shrunk(model, material, "parameters", 0.5, measurement).model
    inputs = {k: v[:2, :12] for k, v in material.held_out[0].items() if k != "labels"}
    inputs.pop("decoder_input_ids", None)
    options = {"max_new_tokens": 12, "min_new_tokens": 12, "num_beams": beams, "do_sample": False}
    options |= {"pad_token_id": 0, "output_logits": True, "return_dict_in_generate": True}
    found = smaller.generate(**inputs, **options)
    monkeypatch.setattr(growing, "_LONG", 2**40)
    expected = smaller.generate(**inputs, **options)
    assert torch.equal(found.sequences, expected.sequences)
    for mine, theirs in zip(found.logits, expected.logits, strict=True):
        torch.testing.assert_close(mine, theirs)
