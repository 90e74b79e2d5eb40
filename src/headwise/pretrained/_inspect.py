"""`inspect`: what each head of a model needs and does, measured on calibration data.

The measurement (see `measure.measurement`) gives the sensitivity to every reduction; a second look
(see `measure.watch`) watches attention at work; a third measures the loss at three sizes.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from headwise.core.files import check_page
from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained.adapters.base import stacks_of
from headwise.pretrained.checks import check_model
from headwise.pretrained.closeup.heads import HeadProfiles, attended_texts, spectra
from headwise.pretrained.findings import findings
from headwise.pretrained.inspection import Inspection
from headwise.pretrained.measure.certificate import Certifier
from headwise.pretrained.measure.importance import all_heads, estimated_losses, removal_losses
from headwise.pretrained.measure.measurement import Measurement, measure_model
from headwise.pretrained.measure.watch import HeadWatch, distance_ranges, watch_heads
from headwise.pretrained.model.mode import evaluating, number_bytes
from headwise.pretrained.model.opening import Subject, opened
from headwise.pretrained.plan.cutting import resized
from headwise.pretrained.plan.shapes import LayerShape, full_shape
from headwise.pretrained.pooling import pool_of
from headwise.pretrained.sizes import losses_by_size
from headwise.pretrained.text.calibration import Sample, few_tokens
from headwise.pretrained.text.material import (
    Source,
    check_source,
    describe,
    material_for,
    readable,
)
from headwise.pretrained.text.options import check_options

_WATCHED = (1024, 256)  # tokens, and the longest input: attention recomputed costs its square
_REMOVED = (4096, 1024)  # with which heads are removed one by one
_SIZED = (1536, 512)  # with which the loss at several sizes is measured


def inspect(
    model: Any,
    *,
    text: Source = None,
    tokens: int = 20_000,
    length: int | None = None,
    pool: str | None = None,
    memory: float | None = None,
    cache: bool = True,
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
    text is not a `Material` of ready batches). `text` is a UTF-8 file (of images or sound: a folder
    of them); by default a packaged one. `exact` also removes each head in turn and measures the
    loss. `report` names an .html file to write. `length`, `pool`, `memory` and `cache` are those
    of `compress`. A model given by name is opened on the `device`: auto, cpu, cuda or mps.
    """
    check_page(report, "report")
    check_source(text)
    check_options(tokens=tokens, length=length, pool=pool, memory=memory, seed=seed)
    subject = opened(model, tokenizer, device)
    with evaluating(subject.model):
        check_model(subject.model)
        pool = pool_of(subject.model, subject.name, pool)
        material = material_for(
            subject.model, subject.tokenizer, text, None, tokens, seed, length, cache
        )
        material = readable(subject.model, material)
        split = (0.35, 0.45, 0.5, 0.6) if exact else (0.6, 0.75, 0.85, 1.0)
        if measurement is None:
            measurement = measure_model(
                subject.model,
                material,
                pool=pool,
                seed=seed,
                memory=memory,
                cache=cache,
                on_progress=part_of(on_progress, 0.0, split[0]),
            )
        part = part_of(on_progress, split[0], split[1])
        watched = few_tokens(material.calibration, *_WATCHED)
        certifier = Certifier(measurement.reductions, _halves(measurement))
        watches = watch_heads(subject.model, measurement, watched, certifier.look, part)
        heads = pd.DataFrame([row for i, watch in enumerate(watches) for row in watch.rows(i)])
        if stacks := stacks_of(measurement.sites):
            heads["stack"] = heads["layer"].map(stacks)
        if measurement.sites[0].causal:
            heads["cache_bytes"] = _cache_bytes(heads, measurement, subject.model)
        heads["bound"] = [certificate.bound for certificate in certifier.certificates()]
        part = part_of(on_progress, split[1], split[2])
        heads["importance"] = estimated_losses(subject.model, measurement, material.held_out, part)
        part = part_of(on_progress, split[2], split[3])
        held_out = Sample(few_tokens(material.held_out, *_SIZED), material.samples[0].source)
        sizes = losses_by_size(subject.model, measurement, held_out, part)
        removed = None
        if exact:
            part = part_of(on_progress, split[3], 1.0)
            every, judging = all_heads(measurement), few_tokens(material.held_out, *_REMOVED)
            removed = removal_losses(subject.model, measurement, judging, every, part)
            heads["importance_measured"] = removed.losses
        profiles = _profiles(subject, measurement, watches, watched)
    errors = pd.DataFrame([row for i, watch in enumerate(watches) for row in watch.errors(i)])
    objective = measurement.objective
    agreement = None if removed is None else removed.agreement
    inspection = Inspection(
        name=subject.name,
        heads=heads,
        errors=errors,
        sizes=sizes,
        findings=findings(heads, errors, measurement.sites[0].head_dim, agreement),
        unit=objective.unit,
        objective=objective.name,
        calibration=describe(material),
        warnings=list(material.warnings),
        profiles=profiles,
        agreement=agreement,
    )
    if report is not None:
        inspection.report(report)
    return inspection


def _profiles(
    subject: Subject,
    measurement: Measurement,
    watches: list[HeadWatch],
    batches: list[dict[str, Tensor]],
) -> HeadProfiles:
    """What the heads do, to look at."""
    length = max((w.seen_length[w.length] for w in watches if w.reach is not None), default=1)
    ranges = distance_ranges(length)
    return HeadProfiles(
        spectra=spectra(measurement),
        reach={
            layer: watch.shares()
            for layer, watch in enumerate(watches)
            if watch.reach is not None and watch.reach.shape[1] == len(ranges)
        },
        distances=[f"{first}–{last}" if last > first else f"{first}" for first, last in ranges],
        texts=attended_texts(subject.model, measurement, batches, subject.tokenizer),
    )


def _cache_bytes(heads: pd.DataFrame, measurement: Measurement, model: Any) -> "pd.Series[float]":
    """Cache that a head needs a token if its output may change by 1 %: its share of the key head's.

    Query heads that share a key head need the largest of their sizes.
    """
    element = number_bytes(model)
    site = measurement.sites[0]
    group = heads["head"] // site.group_size
    keys = heads["size_at_1pct"].groupby([heads["layer"], group]).transform("max")
    return element * (keys + site.head_dim) / site.group_size


def _halves(measurement: Measurement) -> tuple[LayerShape, ...]:
    """Every head with half of its query–key dimensions."""
    shapes = []
    for site in measurement.sites:
        step = 2 if site.rotary else 1
        half = max(step, site.head_dim // 2 // step * step)
        shapes.append(resized(full_shape(site), half, site.head_dim))
    return tuple(shapes)
