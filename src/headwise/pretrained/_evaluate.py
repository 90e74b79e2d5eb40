"""The measured truth about a compressed model: quality, size, cost and speed, side by side."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.errors import require
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.objectives import NextToken, Objective
from headwise.pretrained.plan.counts import cache_elements, flops_per_token
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import full_shape
from headwise.pretrained.text.calibration import to_device, token_count

_CONTEXT = 256  # tokens before the one whose FLOPs are counted


@dataclass
class Pairwise:
    """One quantity of the original and of the compressed model."""

    original: float
    compressed: float

    @property
    def ratio(self) -> float:
        """Compressed / original."""
        return self.compressed / self.original


@dataclass
class Evaluation:
    """Original against compressed. `damage` is in the objective's unit; smaller is better."""

    objective: str
    unit: str
    damage: float
    held_out_tokens: int
    loss: Pairwise | None  # nats a token, of decoders
    attention_parameters: Pairwise
    parameters: Pairwise
    cache_bytes_per_token: Pairwise | None
    attention_flops_per_token: Pairwise
    latency_ms: dict[str, Pairwise]

    def to_data(self) -> dict[str, Any]:
        """All of it, as JSON data."""
        return asdict(self)

    def rows(self) -> list[tuple[str, Pairwise, str]]:
        """What is compared: its name, the pair, and the format in which a person reads it."""
        rows = [
            ("attention parameters", self.attention_parameters, ",.0f"),
            ("all parameters", self.parameters, ",.0f"),
        ]
        if self.cache_bytes_per_token is not None:
            rows.append(("cache, bytes a token", self.cache_bytes_per_token, ",.0f"))
        rows.append(
            (
                f"attention FLOPs a token ({_CONTEXT} before it)",
                self.attention_flops_per_token,
                ",.0f",
            )
        )
        rows += [(f"ms, {name}", pair, ".2f") for name, pair in self.latency_ms.items()]
        if self.loss is not None:
            rows.append(("loss on held-out text, nats a token", self.loss, ".4f"))
        return rows


def evaluate(
    original: Any,
    compressed: Any,
    sites: list[AttentionSite],
    plan: CompressionPlan,
    objective: Objective,
    held_out: list[dict[str, Tensor]],
    *,
    time_it: bool = True,
) -> Evaluation:
    """Compare two models on text that calibration did not see."""
    damage, loss = quality(original, compressed, objective, held_out)
    full = [full_shape(site) for site in sites]
    element = next(original.parameters()).element_size()
    caches = Pairwise(
        element * sum(cache_elements(shape) for shape in full),
        element * sum(cache_elements(shape) for shape in plan.layers),
    )
    return Evaluation(
        objective=objective.name,
        unit=objective.unit,
        damage=damage,
        held_out_tokens=token_count(held_out),
        loss=loss,
        attention_parameters=Pairwise(
            attention_parameters(original, sites), attention_parameters(compressed, sites)
        ),
        parameters=Pairwise(_count(original), _count(compressed)),
        cache_bytes_per_token=caches if sites[0].causal else None,
        attention_flops_per_token=Pairwise(
            sum(flops_per_token(s, shape, _CONTEXT) for s, shape in zip(sites, full, strict=True)),
            sum(
                flops_per_token(s, shape, _CONTEXT)
                for s, shape in zip(sites, plan.layers, strict=True)
            ),
        ),
        latency_ms=latency(original, compressed, held_out, sites[0].causal) if time_it else {},
    )


@torch.no_grad()
def quality(
    original: nn.Module,
    compressed: nn.Module,
    objective: Objective,
    held_out: list[dict[str, Tensor]],
) -> tuple[float, Pairwise | None]:
    """Damage a unit, and for decoders both losses."""
    require(bool(held_out), "there is no held-out text to judge by; give more text")
    total, before, units = 0.0, 0.0, 0
    for inputs in to_device(held_out, next(original.parameters()).device):
        reference = original(**inputs)
        damage, count = objective.damage(reference, compressed(**inputs), inputs)
        total, units = total + damage, units + count
        if isinstance(objective, NextToken):
            before += objective.loss(reference, inputs)
    damage = total / units
    if not isinstance(objective, NextToken):
        return damage, None
    return damage, Pairwise(before / units, before / units + damage)


def attention_parameters(model: nn.Module, sites: list[AttentionSite]) -> int:
    """Parameters of the attention layers, output projections included."""
    count = 0
    for site in sites:
        count += _count(model.get_submodule(site.path))
        if not site.output_inside:
            count += _count(model.get_submodule(site.output))
    return count


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@torch.no_grad()
def latency(
    original: Any, compressed: Any, held_out: list[dict[str, Tensor]], decoder: bool
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
    if decoder:
        results["a generated token"] = _alternate(generate, original, compressed)
    return results


def _alternate(run: Any, original: Any, compressed: Any, rounds: int = 15) -> Pairwise:
    run(original), run(compressed)
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
