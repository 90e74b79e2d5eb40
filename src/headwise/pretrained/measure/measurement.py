"""Measure a model: what every possible reduction of every head would cost in loss.

First the moments (one forward and backward pass; see `moments`), from which the reductions and
their predicted damage follow; then a check of the prediction on real attention (see `curves`).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from torch import nn

from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained.adapters import AttentionSite, attention_sites, read_weights
from headwise.pretrained.measure.curves import LayerCurves, checked_curves
from headwise.pretrained.measure.moments import collect_moments, passes
from headwise.pretrained.measure.objectives import Objective, objective_for
from headwise.pretrained.plan.reductions import LayerReductions, reduce_layer
from headwise.pretrained.text.calibration import Material, token_count

_MOMENTS = 0.6  # the share of the time that they take


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
    model: nn.Module, material: Material, *, seed: int = 0, on_progress: OnProgress = quiet
) -> Measurement:
    """Measure all attention layers on the calibration batches."""
    sites = attention_sites(model)
    objective = objective_for(model)
    runs, batches = passes(sites), material.calibration
    reductions = []
    for index, run in enumerate(runs):
        ends = (_MOMENTS * index / len(runs), _MOMENTS * (index + 1) / len(runs))
        moments = collect_moments(model, run, batches, objective, seed, part_of(on_progress, *ends))
        weights = [read_weights(model, site) for site in run]
        reductions += [reduce_layer(*parts) for parts in zip(run, weights, moments, strict=True)]
    checking = part_of(on_progress, _MOMENTS, 1.0, "recomputing attention at reduced ranks")
    curves = checked_curves(model, sites, reductions, batches, checking)
    tokens = token_count(batches)
    return Measurement(sites, reductions, curves, objective, identity(model, sites), tokens, seed)


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
