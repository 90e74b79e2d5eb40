"""`compress`: plan, apply, judge: a smaller model and the truth about it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import require
from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained._evaluate import evaluate
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.finetune import recover
from headwise.pretrained.measure.certificate import certify
from headwise.pretrained.measure.measurement import Measurement, measure_model
from headwise.pretrained.model.opening import opened
from headwise.pretrained.model.saving import check_new_folder
from headwise.pretrained.model.smaller import smaller_model
from headwise.pretrained.plan.goal import Goal, opened_plan
from headwise.pretrained.plan.make import reductions_of
from headwise.pretrained.plan.plan_file import CompressionPlan, check_plan
from headwise.pretrained.search import smallest_plan
from headwise.pretrained.text.material import Source, check_source, describe, material_for

_MEASURED, _PLANNED, _RECOVERED = 0.5, 0.7, 0.85  # how far along the work is after each part


def compress(
    model: Any,
    *,
    out: str | Path | None = None,
    keep: float | None = None,
    kv_bytes: int | None = None,
    max_loss: float | None = None,
    plan: str | Path | CompressionPlan | AllocationPlan | None = None,
    method: str = "fisher",
    uniform: bool = False,
    finetune: int = 0,
    text: Source = None,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    seed: int = 0,
    tokenizer: Any = None,
    measurement: Measurement | None = None,
    time_it: bool = True,
    on_progress: OnProgress = quiet,
) -> Compressed:
    """Shrink a model's attention and measure what it cost.

    `model` is a hub id, a folder, or a loaded transformers model (with its `tokenizer`, where the
    text is not a `Material` of ready batches), which stays as it is. How small, one of:

    - `keep`: the fraction of attention parameters to keep;
    - `kv_bytes`: bytes of key–value cache a token;
    - `plan`: of an earlier compression, or an allocation of `headwise.plan`; a file or an object;
    - `max_loss` alone: the smallest model that loses at most that much. With another goal it is
      the quality gate (`Compressed.passed`).

    `method` is fisher, or a baseline: uniform-svd, prune-heads, random. `uniform` gives all layers
    one shape, for stock transformers. `finetune` is a number of steps of recovery on the
    calibration text. `text` is a UTF-8 file (vision models: a folder of images), by default a
    packaged one; every fifth part of it is held out unless `eval_text` is given. `out` is a new
    folder to write. A `measurement` of the same model and text saves measuring again.
    """
    folder = None if out is None else Path(out)
    check_new_folder(folder)
    check_source(text, eval_text)
    require(finetune >= 0, f"finetune is {finetune}; it is a number of steps")
    require(tokens > 0, f"tokens is {tokens}; calibration needs some")
    goal = Goal(
        keep=keep,
        kv_bytes=kv_bytes,
        plan=opened_plan(plan),
        max_loss=max_loss,
        method=method,
        uniform=uniform,
    )
    subject = opened(model, tokenizer)
    original = subject.model
    material = material_for(original, subject.tokenizer, text, eval_text, tokens, seed)
    if measurement is None:
        part = part_of(on_progress, 0.0, _MEASURED)
        measurement = measure_model(original, material, seed=seed, on_progress=part)
    if goal.searches:
        assert max_loss is not None
        part = part_of(on_progress, _MEASURED, _PLANNED)
        chosen = smallest_plan(
            original,
            measurement,
            material,
            max_loss,
            method=method,
            uniform=uniform,
            on_progress=part,
        )
    else:
        chosen = goal.plan_for(original, measurement)
    check_plan(chosen, measurement.identity, measurement.sites)
    chosen = replace(chosen, calibration=material.source)

    smaller = smaller_model(original, measurement, chosen)
    sites, objective = measurement.sites, measurement.objective
    recovery, certificates = [], []
    if finetune:
        part = part_of(on_progress, _PLANNED, _RECOVERED)
        recovery = recover(
            smaller,
            original,
            sites,
            objective,
            material.calibration,
            finetune,
            seed=seed,
            on_progress=part,
        )
    else:  # certificates speak of weights that were cut, not trained further
        reductions = reductions_of(measurement, chosen.method)
        certificates = certify(original, sites, reductions, chosen.layers, material.calibration)
    on_progress(_RECOVERED, "judging on held-out data")
    judged = evaluate(
        original, smaller, sites, chosen, objective, material.held_out, time_it=time_it
    )
    on_progress(1.0, "judging on held-out data")
    result = Compressed(
        name=subject.name,
        model=smaller,
        plan=chosen,
        evaluation=judged,
        certificates=certificates,
        recovery=recovery,
        calibration=describe(material),
        max_loss=max_loss,
        tokenizer=subject.tokenizer,
    )
    if folder is not None:
        result.save(folder)
    return result
