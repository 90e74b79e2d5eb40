"""`compress`: plan, apply, judge: a smaller model and the truth about it."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import check_whole, require
from headwise.core.files import check_new_folder, check_page
from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained._evaluate import evaluate
from headwise.pretrained.checks import (
    check_finite,
    check_gate,
    check_model,
    ruins,
    tells_nothing,
    uncertain,
)
from headwise.pretrained.closeup.sizes import sizes_to_choose
from headwise.pretrained.closeup.texts import continuations
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.measure.certificate import certify
from headwise.pretrained.measure.measurement import Measurement, measure_model
from headwise.pretrained.model.mode import evaluating, narrowed, rounded
from headwise.pretrained.model.opening import Subject, opened
from headwise.pretrained.model.saving import check_reopens
from headwise.pretrained.model.smaller import smaller_model
from headwise.pretrained.plan.goal import Goal, check_reachable, check_share, opened_plan
from headwise.pretrained.plan.make import reductions_of
from headwise.pretrained.plan.plan_file import CompressionPlan, check_plan
from headwise.pretrained.pooling import pool_of
from headwise.pretrained.recovery.finetune import recover
from headwise.pretrained.search import smallest_plan
from headwise.pretrained.text.calibration import Material, Sample, few_tokens
from headwise.pretrained.text.material import (
    Source,
    check_source,
    describe,
    material_for,
    readable,
)
from headwise.pretrained.text.options import check_options
from headwise.pretrained.trial import corrected
from headwise.pretrained.verdict.precision import in_own_precision

_MEASURED, _PLANNED, _SHOWN = 0.5, 0.7, 0.85  # how far along the work is after each part
_TRIED = 0.5  # of the planning
_STEPS_AS_LONG = 150  # steps of recovery that take about as long as all other work
_SIZED = (2048, 512)  # with which other sizes are measured for a page
_CERTIFIED = (2048, 256)  # tokens, and the longest input, with which attention is recomputed


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
    fast: bool = False,
    finetune: int = 0,
    text: Source = None,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    length: int | None = None,
    pool: str | None = None,
    memory: float | None = None,
    cache: bool = True,
    seed: int = 0,
    report: str | Path | None = None,
    tokenizer: Any = None,
    device: str = "cpu",
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
    - `max_loss` alone: the smallest model whose damage is at most that much even at the upper end
      of its 95 % interval. With another goal it is the quality gate, by the same interval: unless
      all of it is within, `Compressed.passed` is False and nothing is written; `Compressed.gate`
      tells a damage above from one of which it cannot be told.

    `method` is fisher, or another's: svd-llm, modegpt, taylor, uniform-svd, prune-heads, random.
    `uniform` gives all layers one shape, for stock transformers; `fast` gives each layer one head
    size, which costs some quality and is quicker to compute. `finetune` is a number of steps of
    training all but embeddings to match the original's outputs again. `text` is a UTF-8 file
    (of images or sound: a folder of them), by default a packaged one; every fifth document of it is
    held out unless `eval_text` is given. `length` is that of the longest inputs, by default 2,048
    (encoders: 512) where the model has it. `pool` says how an encoder's embedding is read (mean,
    cls, last), by default as its checkpoint says. `memory` is what the measurement may take, in
    gigabytes. `out` is a new folder to write, `report` an .html file. With `cache`, measurements
    and what the original says of the text are kept on disk, which changes no result; a
    `measurement` of the same model and text can also be given. A model given by
    name is opened on the `device`: auto, cpu, cuda or mps. In half precision on a CPU it is
    computed in float32, if that fits into memory, and comes out in its own.
    """
    folder = None if out is None else Path(out)
    check_new_folder(folder)
    require(
        report is None or folder is None or folder not in Path(report).parents,
        f"report: {report} is inside {folder}, which is to be new; put the page beside it",
    )
    check_page(report, "report")
    check_source(text, eval_text)
    check_options(tokens=tokens, length=length, pool=pool, memory=memory, seed=seed)
    check_whole(finetune, "finetune", 0)
    goal = Goal(
        keep=keep,
        kv_bytes=kv_bytes,
        plan=opened_plan(plan),
        max_loss=max_loss,
        method=method,
        uniform=uniform,
        fast=fast,
    )
    rest = 1 - _recovered(finetune)
    measured, planned, shown = rest * _MEASURED, rest * _PLANNED, 1 - rest * (1 - _SHOWN)
    subject = opened(model, tokenizer, device)
    with evaluating(subject.model):
        check_model(subject.model)
        if folder is not None:
            check_reopens(subject.model)
        check_reachable(goal, subject.model)
        pool = pool_of(subject.model, subject.name, pool)
        material = material_for(
            subject.model, subject.tokenizer, text, eval_text, tokens, seed, length, cache
        )
        material = readable(subject.model, material)
        check_gate(material.samples[0], max_loss)
        if measurement is None:
            measurement = measure_model(
                subject.model,
                material,
                pool=pool,
                seed=seed,
                memory=memory,
                cache=cache,
                on_progress=part_of(on_progress, 0.0, measured),
            )
        part = part_of(on_progress, measured, planned)
        measurement, plan = _chosen(goal, subject.model, measurement, material, cache, part)
        chosen = replace(plan, calibration=material.source)
        part = part_of(on_progress, planned, 1.0 if report is None else shown)
        result = _judged(
            subject,
            measurement,
            material,
            chosen,
            part,
            finetune=finetune,
            seed=seed,
            time_it=time_it,
            cache=cache,
        )
        result.warnings += goal.missed(plan, measurement)
        if report is not None:
            part = part_of(on_progress, shown, 1.0)
            _look_closer(result, goal, subject, measurement, material, part)
    result.model = narrowed(result.model)
    result.max_loss = max_loss
    if folder is not None and result.passed is not False:
        result.save(folder)
    if report is not None:
        result.report(report)
    return result


def _recovered(steps: int) -> float:
    """About which share of the time a recovery of so many steps takes."""
    return steps / (steps + _STEPS_AS_LONG)


def _look_closer(
    result: Compressed,
    goal: Goal,
    subject: Subject,
    measurement: Measurement,
    material: Material,
    on_progress: OnProgress,
) -> None:
    """Add what only a page shows: other sizes and methods, and texts before and after."""
    batches = few_tokens(material.held_out, *_SIZED)
    sample = Sample(batches, material.samples[0].source)
    method = result.plan.method
    result.sizes = sizes_to_choose(
        subject.model,
        measurement,
        sample,
        method,
        on_progress,
        uniform=goal.uniform,
        fast=goal.fast,
    )
    result.texts = continuations(
        subject.model, result.model, material.held_out, measurement.objective, subject.tokenizer
    )


def _chosen(
    goal: Goal,
    model: Any,
    measurement: Measurement,
    material: Material,
    cache: bool,
    on_progress: OnProgress,
) -> tuple[Measurement, CompressionPlan]:
    """The plan that reaches the goal, if it fits the model, and what is known after trying it."""
    trying, searching = part_of(on_progress, 0.0, _TRIED), part_of(on_progress, _TRIED, 1.0)
    known = measurement
    if goal.cuts_by_curves:
        text = material.calibration, material.calibration_kinds
        standard = partial(goal.standard_plan, model)
        known = corrected(model, measurement, standard, *text, trying, cache=cache)
    if goal.searches:
        plan = smallest_plan(model, known, material, goal, searching)
    else:
        known, plan = goal.plan_after(model, known, measurement)
    check_plan(plan, known.identity, known.sites)
    if goal.plan is None and not goal.searches:
        check_share(plan, known)
    return known, plan


def _judged(
    subject: Subject,
    measurement: Measurement,
    material: Material,
    plan: CompressionPlan,
    on_progress: OnProgress,
    *,
    finetune: int,
    seed: int,
    time_it: bool,
    cache: bool,
) -> Compressed:
    """Apply the plan, recover if asked to, and compare with the original."""
    original, sites, objective = subject.model, measurement.sites, measurement.objective
    smaller = smaller_model(original, measurement, plan)
    recovery, certificates = [], []
    recovered = _recovered(finetune)
    if finetune:
        part = part_of(on_progress, 0.0, recovered)
        batches = material.more or material.calibration
        recovery = recover(
            smaller, original, sites, objective, batches, finetune, seed=seed, on_progress=part
        )
        rounded(smaller)
    else:  # certificates speak of weights that were cut, not trained further
        reductions = reductions_of(measurement, plan.method)
        batches = few_tokens(material.calibration, *_CERTIFIED)
        certificates = certify(original, sites, reductions, plan.layers, batches)
    judged = evaluate(
        original,
        smaller,
        sites,
        plan,
        objective,
        material.samples,
        time_it=time_it,
        cache=cache,
        on_progress=part_of(on_progress, recovered, 1.0),
    )
    check_finite(judged)
    own = in_own_precision(original, smaller, objective, material.held_out)
    return Compressed(
        name=subject.name,
        model=smaller,
        plan=plan,
        evaluation=judged,
        certificates=certificates,
        recovery=recovery,
        calibration=describe(material),
        warnings=[
            *material.warnings,
            *ruins(judged),
            *tells_nothing(judged),
            *uncertain(judged),
            *(own.warnings() if own is not None else ()),
        ],
        tokenizer=subject.tokenizer,
    )
