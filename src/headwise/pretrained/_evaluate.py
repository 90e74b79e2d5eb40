"""The measured truth about a compressed model: quality, size, cost and speed, side by side."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import nn

from headwise.core.errors import require
from headwise.core.intervals import Interval
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.model.mode import evaluating, number_bytes
from headwise.pretrained.plan.counts import cache_elements, flops_per_token
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import full_shape
from headwise.pretrained.speed import Pairwise, latency
from headwise.pretrained.text.calibration import Sample, counted, to_device, token_count
from headwise.pretrained.verdict.said import Said

_CONTEXT = 256  # tokens before the one whose FLOPs are counted
_MOST = 0.5  # of what one answer for all inputs loses: beyond it a model is called ruined
_SEEN = 1e-6  # less damage is rounding
_JUDGED = 0.7  # how far along the work is when quality is known, and speed is not


def damage_shown(damage: float) -> str:
    """Four decimals; of a smaller damage two digits, which four decimals would call zero."""
    return f"{damage:.4f}" if damage == 0 or damage >= 0.001 else f"{damage:.2g}"


@dataclass
class TextVerdict:
    """What one text says: damage in the objective's unit with its 95 % interval over documents."""

    text: str
    damage: float
    low: float | None  # None where there is one document
    high: float | None
    documents: int
    tokens: int
    loss: Pairwise | None  # nats a token, of language models
    one_for_all: float | None = None  # damage of one answer to all inputs, if there could be one
    kinds: dict[str, float] = field(default_factory=dict)  # the damage on each kind of text
    counted: str = "tokens"  # or what else `tokens` counts: pixels, numbers

    def __str__(self) -> str:
        said = damage_shown(self.damage)
        if self.low is not None and self.high is not None:
            said += f" [{damage_shown(self.low)}, {damage_shown(self.high)}]"
        if self.loss is not None:
            said += f" (loss {self.loss.compressed - self.loss.original:+.4f})"
        return said

    @property
    def ruined(self) -> bool:
        """Whether the model lost most of what it told inputs apart by, if it told any apart."""
        most = self.one_for_all
        return most is not None and most > _SEEN and self.damage > max(_MOST * most, _SEEN)


@dataclass
class Evaluation:
    """Original against compressed. `damage` is in the objective's unit; smaller is better.

    The first of the `verdicts` is on held-out text like the calibration text, and decides; another
    is on text of another kind.
    """

    objective: str
    unit: str
    verdicts: list[TextVerdict]
    attention_parameters: Pairwise
    parameters: Pairwise
    cache_bytes_per_token: Pairwise | None
    attention_flops_per_token: Pairwise
    latency_ms: dict[str, Pairwise]

    @property
    def damage(self) -> float:
        """On the held-out text."""
        return self.verdicts[0].damage

    @property
    def loss(self) -> Pairwise | None:
        """Nats a token of the held-out text, of language models."""
        return self.verdicts[0].loss

    @property
    def held_out_tokens(self) -> int:
        """How many tokens the verdict rests on."""
        return self.verdicts[0].tokens

    def to_data(self) -> dict[str, Any]:
        """All of it, as JSON data."""
        return {"damage": self.damage} | asdict(self)

    def rows(self) -> list[tuple[str, Pairwise, str]]:
        """What is compared: its name, the pair, and the format in which a person reads it."""
        rows = [
            ("attention parameters", self.attention_parameters, ",.0f"),
            ("all parameters", self.parameters, ",.0f"),
        ]
        if self.cache_bytes_per_token is not None:
            rows.append(("cache, bytes a token", self.cache_bytes_per_token, ",.0f"))
        flops = f"attention FLOPs a token ({_CONTEXT} before it)"
        rows.append((flops, self.attention_flops_per_token, ",.0f"))
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
    samples: list[Sample],
    *,
    time_it: bool = True,
    cache: bool = False,
    on_progress: OnProgress = quiet,
) -> Evaluation:
    """Compare two models on texts that calibration did not see, the first of them in charge.

    With `cache`, what the original says of them is kept on disk for the next smaller model.
    """
    total = sum(len(sample.batches) for sample in samples)
    done = 0
    verdicts = []
    for sample in samples:

        def seen(count: int, done: int = done) -> None:
            on_progress(_JUDGED * (done + count) / total, "judging on held-out data")

        said = Said(original, sites, objective, sample.batches, cache=cache, judged=True)
        verdict = quality(original, compressed, objective, sample, seen, said)
        verdicts.append(replace(verdict, one_for_all=said.one_for_all))
        done += len(sample.batches)
    full = [full_shape(site) for site in sites]
    element = number_bytes(original)
    caches = Pairwise(
        element * sum(cache_elements(shape) for shape in full),
        element * sum(cache_elements(shape) for shape in plan.layers),
    )
    times = {}
    if time_it:
        on_progress(_JUDGED, "timing both models")
        times = latency(original, compressed, samples[0].batches, objective)
    on_progress(1.0, "judged")
    return Evaluation(
        objective=objective.name,
        unit=objective.unit,
        verdicts=verdicts,
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
        latency_ms=times,
    )


@torch.no_grad()
def quality(
    original: nn.Module,
    compressed: nn.Module,
    objective: Objective,
    sample: Sample,
    seen: Any = lambda count: None,
    known: list[Any] | Said | None = None,
) -> TextVerdict:
    """Damage a unit with its interval over documents, and for language models both losses.

    `known` are the original's outputs, where several models are compared with it.

    Documents differ in length, so the damage a unit is a ratio of sums m = ΣD/ΣU. Its interval is
    that of the mean of m + (D − mU)/Ū over documents, which has the ratio as its mean and, to
    first order, the ratio's variance. A few documents may carry most of the damage, so it is the
    interval for skewed values.
    """
    require(bool(sample.batches), "there is no held-out text to judge by; give more text")
    device = next(original.parameters()).device
    names = sample.documents or _each_alone(sample)
    sums: dict[int, torch.Tensor] = {}
    for count, inputs in enumerate(to_device(sample.batches, device), start=1):
        with evaluating(original, compressed):
            outputs = original(**inputs) if known is None else known[count - 1]
            compared = objective.compare(outputs, compressed(**inputs), inputs)
        losses = (
            torch.zeros(2, len(compared.damage)) if compared.losses is None else compared.losses
        )
        together = torch.stack([compared.damage, compared.units, *losses.to(compared.damage)])
        for name, column in zip(names[count - 1], together.double().cpu().T, strict=True):
            sums[name] = sums.get(name, 0) + column
        seen(count)
    damage, units, before, after = torch.stack(list(sums.values())).T
    ratio = float(damage.sum() / units.sum())
    by_document = ratio + (damage - ratio * units) / units.mean()
    interval = Interval.of_skewed(by_document.tolist())
    loss = None if compared.losses is None else Pairwise(*_ratios(units, before, after))
    return TextVerdict(
        text=sample.source,
        damage=ratio,
        low=max(0.0, interval.low) if len(sums) > 1 else None,  # damage is never negative
        high=interval.high if len(sums) > 1 else None,
        documents=len(sums),
        tokens=token_count(sample.batches),
        counted=counted(sample.batches),
        loss=loss,
        kinds=_by_kind(sample, sums),
    )


def _by_kind(sample: Sample, sums: dict[int, torch.Tensor]) -> dict[str, float]:
    """The damage a unit of each kind of text, from damage, units and losses by document."""
    kinds: dict[str, torch.Tensor] = {}
    for document, column in sums.items() if sample.kinds else ():
        kind = sample.kinds[document]
        kinds[kind] = kinds.get(kind, 0) + column
    return {kind: float(column[0] / column[1]) for kind, column in kinds.items()}


def document_count(sample: Sample) -> int:
    """How many documents the interval of a verdict on this is over."""
    return len({name for names in sample.documents or _each_alone(sample) for name in names})


def _each_alone(sample: Sample) -> list[list[int]]:
    """Every sequence a document of its own."""
    sizes = [len(next(iter(batch.values()))) for batch in sample.batches]
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]


def _ratios(units: torch.Tensor, *sums: torch.Tensor) -> list[float]:
    return [float(each.sum() / units.sum()) for each in sums]


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
