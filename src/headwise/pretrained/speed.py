"""How long both models take, side by side: with a short context and with a filled cache."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.model.mode import computed_in
from headwise.pretrained.text.calibration import counted, to_device, token_count
from headwise.pretrained.text.limits import longest_input


@dataclass
class Pairwise:
    """One quantity of the original and of the compressed model."""

    original: float
    compressed: float

    @property
    def ratio(self) -> float:
        """Compressed / original."""
        return self.compressed / self.original


@torch.no_grad()
def latency(
    original: Any, compressed: Any, held_out: list[dict[str, Tensor]], objective: Objective
) -> dict[str, Pairwise]:
    """Milliseconds, the median of alternating runs: one forward pass; one generated token."""
    device = next(original.parameters()).device
    inputs = next(to_device([_enough(max(held_out, key=lambda b: token_count([b])))], device))

    def forward(model: Any) -> float:
        return _timed(lambda: model(**inputs), device)

    longest = longest_input(original) or _CONTEXT
    asked = min(16, longest // 2)
    tokens = min(32, longest - asked)

    def generate(model: Any) -> float:
        prompt = inputs["input_ids"][:1, :asked]
        options = {"min_new_tokens": tokens, "max_new_tokens": tokens, "do_sample": False}
        mask = torch.ones_like(prompt)
        run = lambda: model.generate(  # noqa: E731
            prompt, attention_mask=mask, pad_token_id=0, **options
        )
        return _timed(run, device) / tokens

    results = {
        f"forward of {token_count([inputs])} {counted([inputs])}": _alternate(
            forward, original, compressed
        )
    }
    if isinstance(objective, NextToken) and "input_ids" in inputs:
        results["a generated token"] = _alternate(generate, original, compressed)
        results |= _with_a_filled_cache(original, compressed, device)
    return {name + computed_in(original): pair for name, pair in results.items()}


_ENOUGH = 512  # tokens of a forward pass that keep a processor busy
_BATCH, _CONTEXT, _CACHE_BYTES = 8, 2048, 2**30
_SECONDS, _FEWEST, _MOST = 1.0, 3, 15  # that timing one thing takes about, and rounds of it


def _enough(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """As many of a batch of texts as have that many tokens; images as they are."""
    if "input_ids" not in batch:
        return batch
    rows = -(-_ENOUGH // batch["input_ids"].shape[1])
    return {name: value[:rows] for name, value in batch.items()}


def _with_a_filled_cache(
    original: Any, compressed: Any, device: torch.device
) -> dict[str, Pairwise]:
    """One more token after a long context, where the cache is the cost, if there is a cache."""
    longest = longest_input(original) or _CONTEXT
    context, batch = min(_CONTEXT, longest - 64), _BATCH
    if context < 64 or getattr(original.config, "is_encoder_decoder", False):
        return {}
    token = sum(
        layer.keys[0].numel() + layer.values[0].numel()
        for layer in getattr(filled_cache(original, 1, 1), "layers", ())
    )
    if token == 0:
        return {}
    size = next(original.parameters()).element_size()
    batch = int(min(_BATCH, max(1, _CACHE_BYTES // (token * context * size))))
    caches = {id(m): filled_cache(m, batch, context) for m in (original, compressed)}
    ids = torch.zeros(batch, 1, dtype=torch.long, device=device)

    def step(model: Any) -> float:
        cache = caches[id(model)]
        return _timed(lambda: model(input_ids=ids, past_key_values=cache, use_cache=True), device)

    name = f"a token more, batch {batch} × {context:,} tokens before it"
    return {name: _alternate(step, original, compressed)}


@torch.no_grad()
def filled_cache(model: Any, batch: int, context: int) -> Any:
    """A cache as if `context` tokens had been read; None of a model whose cache is not a plain one.

    A plain cache holds all tokens in every layer; one with a window knows its own length.
    """
    ids = torch.zeros(batch, 1, dtype=torch.long, device=next(model.parameters()).device)
    cache = getattr(model(input_ids=ids, use_cache=True), "past_key_values", None)
    layers = getattr(cache, "layers", [])
    if not layers or any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        return None
    for layer in layers:
        layer.keys = layer.keys.expand(-1, -1, context, -1).clone()
        layer.values = layer.values.expand(-1, -1, context, -1).clone()
    return cache


def _alternate(run: Any, original: Any, compressed: Any) -> Pairwise:
    """Medians of as many rounds as take about a second: of three to fifteen, after one to warm
    up, which counts where rounds are so long that it is like the others."""
    start = time.perf_counter()
    first = (run(original), run(compressed))
    once = time.perf_counter() - start
    rounds = int(min(_MOST, max(_FEWEST, _SECONDS / once)))
    times = [first] if once > _SECONDS else []
    times += [(run(original), run(compressed)) for _ in range(rounds - len(times))]
    before, after = (sorted(column)[rounds // 2] for column in zip(*times, strict=True))
    return Pairwise(before, after)


def _timed(work: Any, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - start)
