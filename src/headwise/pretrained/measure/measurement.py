"""Measure a model: what every possible reduction of every head would cost.

First the moments (one forward and backward pass; see `moments`), from which the reductions and
their predicted damage follow; then a check of the prediction on real attention (see `curves`).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from torch import nn

from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained.adapters import AttentionSite, attention_sites, read_weights
from headwise.pretrained.measure.agreement import prepare, require_described
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.curves import LayerCurves, checked_curves
from headwise.pretrained.measure.memory import described, passes, sums_ceiling
from headwise.pretrained.measure.moments import LayerMoments, collect_moments
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.measure.store import Kept, Tensors, measurement_key
from headwise.pretrained.measure.trees import built, flat
from headwise.pretrained.model.mode import evaluating
from headwise.pretrained.plan.reductions import LayerReductions, reduce_layer
from headwise.pretrained.text.calibration import Material, token_count

_MOMENTS, _REDUCED = 0.75, 0.85  # how far along the work is after each part
_WEIGHTS = frozenset({"weights"})  # the model has them


@dataclass
class Measurement:
    """Everything a plan needs, and everything that applying it needs."""

    sites: list[AttentionSite]
    reductions: list[LayerReductions]
    curves: list[LayerCurves]
    objective: Objective
    identity: dict[str, Any]
    tokens: int
    seed: int


def measure_model(
    model: nn.Module,
    material: Material,
    *,
    pool: str | None = None,
    seed: int = 0,
    memory: float | None = None,
    cache: bool = True,
    on_progress: OnProgress = quiet,
) -> Measurement:
    """Measure all attention layers on the calibration batches.

    `pool` says how an encoder's embedding is read: mean, cls or last. `memory` is what the sums
    may take, in gigabytes (by default half of what is free); a model that needs more takes
    several passes. With `cache`, a measurement of the same model, batches and options is taken
    from disk, and one that was stopped goes on.
    """
    sites = attention_sites(model)
    objective = objective_for(model, pool)
    batches = material.calibration
    kept = Kept(measurement_key(model, sites, batches, objective, seed) if cache else None)
    tensors = kept.read()
    with evaluating(model):
        if tensors is None:
            prepare(model, objective, batches)
        require_described(model, sites, batches)  # a hook, say, is not in what the key is made of
        if tensors is None:
            tensors = _measured(model, sites, objective, batches, seed, memory, kept, on_progress)
            kept.finish(tensors)
    objective.restore(tensors)
    reductions = [
        built(LayerReductions, f"reductions.{index}", tensors, weights=read_weights(model, site))
        for index, site in enumerate(sites)
    ]
    return Measurement(
        sites,
        reductions,
        built(list[LayerCurves], "curves", tensors),
        objective,
        identity(model, sites),
        token_count(batches),
        seed,
    )


def _measured(
    model: nn.Module,
    sites: list[AttentionSite],
    objective: Objective,
    batches: list[dict[str, Any]],
    seed: int,
    memory: float | None,
    kept: Kept,
    on_progress: OnProgress,
) -> Tensors:
    """Everything that is measured, as flat tensors."""
    runs = passes(sites, sums_ceiling(model, memory))
    moments: list[LayerMoments] = []
    for index, run in enumerate(runs):
        first, last = (_MOMENTS * done / len(runs) for done in (index, index + 1))
        part = part_of(on_progress, first, last, described(runs, index))
        moments += collect_moments(
            model, run, batches, objective, seed, part, kept, f"sums-{index + 1}-of-{len(runs)}"
        )
    reductions = []
    for index, site in enumerate(sites):
        rounded = built(LayerMoments, "", flat(moments[index], ""))
        reductions.append(reduce_layer(site, read_weights(model, site), rounded))
        share = _MOMENTS + (_REDUCED - _MOMENTS) * (index + 1) / len(sites)
        on_progress(share, "finding each head's best reductions")
    checking = part_of(on_progress, _REDUCED, 1.0, "recomputing attention at reduced ranks")
    curves = checked_curves(model, sites, reductions, batches, checking)
    return {
        **flat(reductions, "reductions", _WEIGHTS),
        **flat(curves, "curves"),
        **objective.state(),
    }


def identity(model: Any, sites: list[AttentionSite]) -> dict[str, Any]:
    """What tells this model from another: its shape, and a fingerprint of its attention weights."""
    digest = hashlib.sha256()
    for site in (sites[0], sites[-1]):
        weight = model.get_submodule(site.query.path).weight.detach()
        digest.update(weight.float().cpu().numpy().tobytes())
    return {
        "model_type": model.config.model_type,
        "layers": len(sites),
        "heads": sites[0].heads,
        "kv_heads": sites[0].kv_heads,
        "head_dim": sites[0].head_dim,
        "hidden": sites[0].hidden,
        "weights": digest.hexdigest()[:16],
    }
