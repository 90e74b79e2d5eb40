"""Try a plan layer by layer, and correct what was predicted by what the whole model shows.

A prediction weighs all tokens alike. A few may matter more than all others, such as the first one,
where many heads rest, and then a cut that looks cheap is not. Damage adds up over layers, so each
layer's values, queries and keys are cut alone, as the plan has them, and the true damage tells by
how much the curves there are wrong.

That is done at a standard size, whatever size is asked for: what is found serves the sizes around
it, and is kept on disk.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import InputError
from headwise.core.intervals import Interval
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.curves import LayerCurves
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.measure.store import Kept, Tensors, outputs_key
from headwise.pretrained.measure.trees import flat
from headwise.pretrained.model.mode import evaluating
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import LayerShape, full_shape
from headwise.pretrained.text.calibration import few_tokens, to_device
from headwise.pretrained.verdict.cuts import damages_alone
from headwise.pretrained.verdict.said import Said

_TOKENS = 40_000  # through the model in all
_FEWEST, _MOST, _LENGTH = 512, 2048, 256  # tokens a cut, and the longest input
_SHORT = 128  # which may be so short for all kinds of text to be tried
_FLOOR = 0.01  # of an average cut's damage: less than that is not worth a correction
_LEAST, _LARGEST = 0.25, 1e3  # a correction's range


def corrected(
    model: Any,
    measurement: Measurement,
    standard: Callable[[Measurement], CompressionPlan],
    batches: list[dict[str, Tensor]],
    kinds: list[list[str]] | None = None,
    on_progress: OnProgress = quiet,
    *,
    cache: bool = False,
) -> Measurement:
    """The measurement with its curves corrected at the `standard` plan, if that makes it better.

    With `cache`, what is found is kept on disk, for plans of other sizes.
    """
    try:
        plan = standard(measurement)
    except InputError:  # a model too small for that size stays untried
        return measurement
    known = tried(model, measurement, plan, batches, kinds, on_progress, cache=cache)
    plans = [standard(known), plan]
    if plans[0].layers == plan.layers:
        return known
    best = least_damaging(model, known, plans, batches, kinds, cache=cache)
    return measurement if best is plan else known


def tried(
    model: Any,
    measurement: Measurement,
    plan: CompressionPlan,
    batches: list[dict[str, Tensor]],
    kinds: list[list[str]] | None = None,
    on_progress: OnProgress = quiet,
    *,
    cache: bool = False,
) -> Measurement:
    """The measurement with its curves scaled to the damage that each part of the plan does, on all
    kinds of text where the `kinds` of the batches' rows are known.

    With `cache`, what is found is kept on disk, for the next time that these cuts are tried.
    """
    cuts = [
        (layer, role, shape)
        for layer, site in enumerate(measurement.sites)
        for role, shape in _alone(site, plan.layers[layer])
    ]
    if not cuts:
        return measurement
    some = _to_try(batches, min(_MOST, max(_FEWEST, _TOKENS // len(cuts))), kinds)
    said = [_predicted(measurement.curves[layer], role, shape) for layer, role, shape in cuts]
    floor = _FLOOR * sum(said) / len(said) + 1e-300
    alone = [(layer, shape) for layer, _, shape in cuts]
    damages = damages_alone(model, measurement, alone, some, cache, on_progress)
    scales: list[dict[str, float]] = [{} for _ in measurement.sites]
    for (layer, role, _), expected, found in zip(cuts, said, damages, strict=True):
        scale = (found + floor) / (expected + floor)
        scales[layer][role] = min(max(scale, _LEAST), _LARGEST)
    curves = [_scaled(each, scale) for each, scale in zip(measurement.curves, scales, strict=True)]
    return replace(measurement, curves=curves)


def _to_try(
    batches: list[dict[str, Tensor]], tokens: int, kinds: list[list[str]] | None
) -> list[dict[str, Tensor]]:
    """About so many tokens, in shorter inputs rather than without a kind of text."""
    known = len({kind for names in kinds or () for kind in names}) or 1
    length = min(_LENGTH, max(_SHORT, tokens // known))
    return few_tokens(batches, max(tokens, known * length), length, kinds)


def least_damaging(
    model: Any,
    measurement: Measurement,
    plans: list[CompressionPlan],
    batches: list[dict[str, Tensor]],
    kinds: list[list[str]] | None = None,
    *,
    cache: bool = False,
) -> CompressionPlan:
    """The first plan, unless another does less on calibration text as a whole, and not by chance.

    Each cut was tried alone; a plan made from curves so corrected may be worse. But a few inputs
    seldom tell, least of all where an input counts as one, as an embedding does.
    """
    some = _to_try(batches, _MOST, kinds)
    # A model that a hook changes has other curves, where they were corrected.
    about: Tensors = {
        **flat(measurement.reductions, "reductions", frozenset({"weights"})),
        **flat(measurement.curves, "curves"),
    }
    layers = [repr(plan.layers) for plan in plans]
    kept = Kept(outputs_key(model, some, measurement.objective, layers, about) if cache else None)
    damages = (kept.read("plans") or {}).get("damages")
    if damages is None:
        said = Said(model, measurement.sites, measurement.objective, some, cache=False)
        damages = torch.stack([_by_input(model, measurement, plan, some, said) for plan in plans])
        kept.finish({"damages": damages}, "plans")
    first, best = plans[0], damages[0].tolist()
    for plan, found in zip(plans[1:], damages[1:].tolist(), strict=True):
        known = all(map(isfinite, best))
        gain = [a - b for a, b in zip(best, found, strict=True)]
        if all(map(isfinite, found)) and (not known or Interval.of(gain).low > 0):
            first, best = plan, found
    return first


@torch.no_grad()
def _by_input(
    model: Any,
    measurement: Measurement,
    plan: CompressionPlan,
    batches: list[dict[str, Tensor]],
    said: Said,
) -> Float[Tensor, " inputs"]:
    """The damage that the plan does to each input."""
    smaller, objective = apply_plan(model, measurement, plan), measurement.objective
    with evaluating(model, smaller):
        found = [
            float(objective.compare(said[index], smaller(**batch), batch).damage.sum())
            for index, batch in enumerate(to_device(batches, next(model.parameters()).device))
        ]
    return torch.tensor(found, dtype=torch.float64)


def _alone(site: AttentionSite, shape: LayerShape) -> Iterator[tuple[str, LayerShape]]:
    """What the shape does to values, to queries and to keys, each as a shape of its own."""
    whole = full_shape(site)
    pairs = list(zip(shape.groups, whole.groups, strict=True))
    values = tuple(
        replace(group, qk_dim=full.qk_dim) if group.heads else group for group, full in pairs
    )
    if values != whole.groups:
        yield "values", LayerShape(groups=values, padded=shape.padded)
    queries = tuple(
        replace(full, qk_dim=group.qk_dim) if group.heads else full for group, full in pairs
    )
    if queries != whole.groups:
        yield "queries", LayerShape(groups=queries, padded=shape.padded)
    if shape.query_rank is not None:
        yield "query_factor", replace(whole, query_rank=shape.query_rank)
    if shape.key_rank is not None:
        yield "key_factor", replace(whole, key_rank=shape.key_rank)


def _predicted(curves: LayerCurves, role: str, shape: LayerShape) -> float:
    if role == "values":
        sizes = [group.v_dim if group.heads else 0 for group in shape.groups]
        return sum(float(c[size]) for c, size in zip(curves.values, sizes, strict=True))
    if role == "queries":
        sizes = [group.qk_dim for group in shape.groups]
        return sum(float(c[size]) for c, size in zip(curves.queries, sizes, strict=True))
    rank = shape.query_rank if role == "query_factor" else shape.key_rank
    return float(getattr(curves, role)[rank])


def _scaled(curves: LayerCurves, scales: dict[str, float]) -> LayerCurves:
    def times(role: str) -> Callable[[Any], Any]:
        return lambda curve: curve * scales.get(role, 1.0)

    factors = {
        role: times(role)(getattr(curves, role))
        for role in ("query_factor", "key_factor")
        if role in scales
    }
    return replace(
        curves,
        values=[times("values")(curve) for curve in curves.values],
        queries=[times("queries")(curve) for curve in curves.queries],
        **factors,
    )
