"""An own evaluation, of nothing but plain torch: how far two models are apart on fresh inputs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from odd_checkpoints import SPECIAL

LENGTH = 48  # of the longest inputs
WRITERS = ("CausalLM", "LMHeadModel", "MTModel", "ForConditionalGeneration")  # of language
_AT_ONCE, _PICTURES = 32, 640


def pictures(model: Any) -> list[dict[str, torch.Tensor]]:
    """Pink noise, drawn anew."""
    size, channels = model.config.image_size, model.config.num_channels
    rng = np.random.default_rng(5)
    away = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None])
    away[0, 0] = 1.0
    noise = np.fft.rfft2(rng.standard_normal((_PICTURES, channels, size, size))) / away
    pink = np.fft.irfft2(noise, s=(size, size))
    pink /= 3 * pink.std(axis=(1, 2, 3), keepdims=True)
    pixels = torch.from_numpy(pink.clip(-1, 1)).to(next(model.parameters()).dtype)
    return [{"pixel_values": part} for part in pixels.split(_AT_ONCE)]


def passages(folder: Path, model: Any, fresh: list[str]) -> list[dict[str, torch.Tensor]]:
    """All of them in the way the model reads: windows of whole passages, halves, masked."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = type(model).__name__
    rng = torch.Generator().manual_seed(9)
    batches = []
    for ids in _stacked(tokenizer(fresh)["input_ids"], name.endswith(WRITERS)):
        batch = {"input_ids": ids}
        if getattr(model.config, "is_encoder_decoder", False):
            half = ids.shape[1] // 2
            batch = {"input_ids": ids[:, :half], "decoder_input_ids": ids[:, half:]}
        elif "MaskedLM" in name:
            chosen = (torch.rand(ids.shape, generator=rng) < 0.15) & (ids >= len(SPECIAL))
            if not bool(chosen.any()):
                continue
            fate = torch.rand(ids.shape, generator=rng)
            noise = torch.randint(len(SPECIAL), len(tokenizer), ids.shape, generator=rng)
            given = torch.where(chosen & (fate < 0.8), SPECIAL.index("[MASK]"), ids)
            given = torch.where(chosen & (fate >= 0.9), noise, given)
            batch = {"input_ids": given, "chosen": chosen}
        batches.append(batch)
    return batches


def _stacked(texts: list[list[int]], writes: bool) -> list[torch.Tensor]:
    """Equal lengths together. A model that goes on with texts reads whole windows of them; another
    reads their beginnings, and their closing token."""
    by_length: dict[int, list[list[int]]] = {}
    for ids in texts:
        if writes:
            starts = range(0, len(ids) - LENGTH + 1, LENGTH)
            pieces = [ids[start : start + LENGTH] for start in starts]
        else:
            pieces = [ids if len(ids) <= LENGTH else [*ids[: LENGTH - 1], ids[-1]]]
        for piece in pieces:
            by_length.setdefault(len(piece), []).append(piece)
    return [part for rows in by_length.values() for part in torch.tensor(rows).split(_AT_ONCE)]


@torch.no_grad()
def apart(one: Any, other: Any, batches: list[dict[str, torch.Tensor]]) -> tuple[float, float]:
    """Damage a unit, and that of the mean prediction in place of every one."""
    rows = [(predictions(one, batch), predictions(other, batch)) for batch in batches]
    before, after = (torch.cat(part) for part in zip(*rows, strict=True))
    name = type(one).__name__
    if before.shape[-1] == 1:  # a score
        spread = before.std()
        return float(((after - before) / spread).square().mean()), 1.0
    if name.endswith(("Model", "WithProjection")) and not name.endswith(WRITERS):
        first, second = (torch.nn.functional.normalize(each, dim=-1) for each in (before, after))
        middle = torch.nn.functional.normalize(first.mean(0), dim=-1)
        return float((1 - (first * second).sum(-1)).mean()), float((1 - first @ middle).mean())
    if name.endswith("ForQuestionAnswering"):  # distributions over places: of no fixed number
        return divergence(before, after), math.inf
    parts = 1
    if getattr(one.config, "problem_type", None) == "multi_label_classification":
        parts = before.shape[-1]  # a yes or no for each label, summed
        before, after = (torch.stack([x, torch.zeros_like(x)], -1) for x in (before, after))
    constant = before.softmax(-1).mean(0).log().expand_as(before)
    return parts * divergence(before, after), parts * divergence(before, constant)


def divergence(before: torch.Tensor, after: torch.Tensor) -> float:
    p, q = before.log_softmax(-1), after.log_softmax(-1)
    return float((p.exp() * (p - q)).nan_to_num(nan=math.nan, posinf=math.inf).sum(-1).mean())


def predictions(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """A row a prediction."""
    inputs = {name: value for name, value in batch.items() if name != "chosen"}
    outputs = model(**inputs)
    name = type(model).__name__
    if name.endswith("ForQuestionAnswering"):
        both = torch.cat([outputs.start_logits, outputs.end_logits])
        return torch.nn.functional.pad(both, (0, LENGTH - both.shape[1]), value=-1e9).double()
    for embedding in ("text_embeds", "image_embeds"):
        if embedding in outputs:
            return outputs[embedding].double()
    if "logits" not in outputs:
        return outputs.last_hidden_state.double().mean(1)
    logits = outputs.logits.double()
    if "chosen" in batch:
        return logits[batch["chosen"]]
    if logits.ndim == 3 and "TokenClassification" not in name:
        logits = logits[:, :-1]
    return logits.flatten(0, -2)


@torch.no_grad()
def not_stock(kind: Any, original: Any, out: Path, smaller: Any, batch: Any) -> str | None:
    """Why stock transformers does not open it; None where headwise does not say that it does."""
    if "headwise" in json.loads((out / "config.json").read_text()):
        return None
    stock = kind.from_pretrained(out, dtype="auto").eval()
    first, second = (predictions(each, batch) for each in (stock, smaller))
    close = torch.allclose(first, second, rtol=1e-2, atol=1e-2)
    return None if close else "stock transformers computes something else"


@torch.no_grad()
def not_cached(model: Any, batch: dict[str, torch.Tensor]) -> str | None:
    """Whether a decoder's cache gives other predictions than reading all at once."""
    name = type(model).__name__
    if (
        not name.endswith(("CausalLM", "LMHeadModel"))
        or next(model.parameters()).dtype != torch.float32
    ):
        return None
    ids = batch["input_ids"]
    whole = model(input_ids=ids).logits[:, -1]
    cache = model(input_ids=ids[:, :-3], use_cache=True).past_key_values
    for place in range(-3, 0):
        end = ids.shape[1] + place + 1
        step = model(input_ids=ids[:, end - 1 : end], past_key_values=cache, use_cache=True)
    scale = float(whole.abs().max()) + 1e-6
    off = float((step.logits[:, -1] - whole).abs().max()) / scale
    return None if off < 1e-2 else f"with its cache it computes something else (by {off:.1%})"
