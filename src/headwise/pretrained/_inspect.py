"""`inspect`: what each head of a model needs and does, measured on calibration data.

Two passes. The first (see `measure.measurement`) gives the loss sensitivity of every reduction;
the second (see `measure.watch`) watches attention at work.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained.findings import findings
from headwise.pretrained.inspection import Inspection
from headwise.pretrained.measure.importance import removal_losses
from headwise.pretrained.measure.measurement import Measurement, measure_model
from headwise.pretrained.measure.watch import watch_heads
from headwise.pretrained.model.opening import opened
from headwise.pretrained.shown import check_page
from headwise.pretrained.text.calibration import longest_batches
from headwise.pretrained.text.material import Source, check_source, describe, material_for

_TOKENS = 4096  # watched


def inspect(
    model: Any,
    *,
    text: Source = None,
    tokens: int = 20_000,
    exact: bool = False,
    report: str | Path | None = None,
    seed: int = 0,
    tokenizer: Any = None,
    device: str = "cpu",
    measurement: Measurement | None = None,
    on_progress: OnProgress = quiet,
) -> Inspection:
    """What each head of a model needs: ranks, saturation, importance, redundancy.

    `model` is a hub id, a folder, or a loaded transformers model (with its `tokenizer`, where the
    text is not a `Material` of ready batches). `text` is a UTF-8 file (vision models: a folder of
    images); by default a packaged one. `exact` also removes each head in turn and measures the
    loss. `report` names an .html file to write. A model given by name is opened on the
    `device`: auto, cpu, cuda or mps.
    """
    check_page(report, "report")
    check_source(text)
    subject = opened(model, tokenizer, device)
    material = material_for(subject.model, subject.tokenizer, text, None, tokens, seed)
    split = (0.4, 0.6) if exact else (0.6, 1.0)
    if measurement is None:
        part = part_of(on_progress, 0.0, split[0])
        measurement = measure_model(subject.model, material, seed=seed, on_progress=part)
    batches = longest_batches(material.calibration, _TOKENS)
    watches = watch_heads(subject.model, measurement, batches, part_of(on_progress, *split))
    heads = pd.DataFrame([row for i, watch in enumerate(watches) for row in watch.rows(i)])
    heads["importance"] = np.concatenate([curves.removal for curves in measurement.curves])
    if exact:
        held_out = longest_batches(material.held_out, _TOKENS)
        part = part_of(on_progress, split[1], 1.0)
        heads["importance_measured"] = removal_losses(subject.model, measurement, held_out, part)
    errors = pd.DataFrame([row for i, watch in enumerate(watches) for row in watch.errors(i)])
    objective = measurement.objective
    inspection = Inspection(
        name=subject.name,
        heads=heads,
        errors=errors,
        findings=findings(heads, errors, measurement.sites[0].head_dim),
        unit=objective.unit,
        objective=objective.name,
        calibration=describe(material),
    )
    if report is not None:
        inspection.report(report)
    return inspection
