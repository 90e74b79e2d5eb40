"""How long both models take, side by side."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.text.calibration import to_device, token_count


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
    inputs = next(to_device([max(held_out, key=lambda b: token_count([b]))], device))

    def forward(model: Any) -> float:
        return _timed(lambda: model(**inputs), device)

    tokens = 32

    def generate(model: Any) -> float:
        prompt = inputs["input_ids"][:1, :16]
        options = {"min_new_tokens": tokens, "max_new_tokens": tokens, "do_sample": False}
        mask = torch.ones_like(prompt)
        run = lambda: model.generate(  # noqa: E731
            prompt, attention_mask=mask, pad_token_id=0, **options
        )
        return _timed(run, device) / tokens

    results = {
        f"forward of {token_count([inputs])} tokens": _alternate(forward, original, compressed)
    }
    if isinstance(objective, NextToken) and "input_ids" in inputs:
        results["a generated token"] = _alternate(generate, original, compressed)
    return results


def _alternate(run: Any, original: Any, compressed: Any) -> Pairwise:
    """The median of fifteen rounds, or of as many as take about ten seconds, but three."""
    once = run(original) + run(compressed)
    rounds = int(min(15, max(3, 10_000 / once)))
    times = [(run(original), run(compressed)) for _ in range(rounds)]
    first, second = (sorted(column)[rounds // 2] for column in zip(*times, strict=True))
    return Pairwise(first, second)


def _timed(work: Any, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - start)
