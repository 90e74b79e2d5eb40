"""One verdict from all that was measured, in words a person can act on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.counting.extremum import Extremum
from headwise.advise.probe.counting.invariance import Invariance
from headwise.advise.probe.counting.sensitivity import Sensitivity
from headwise.advise.probe.descent.deeper import CLEARLY, SecondLayer
from headwise.advise.probe.descent.head_dim import HeadDim
from headwise.advise.probe.descent.lengths import LengthTrend
from headwise.advise.probe.descent.transition import Transition
from headwise.advise.probe.finding import COLUMNS, Finding
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.trust import judge_training
from headwise.advise.probe.verdict import CONFIDENT, from_count
from headwise.advise.probe.words import (
    counted_notes,
    counted_rows,
    data_notes,
    depth_note,
    head_dim_note,
    length_notes,
    length_rows,
    pooled_notes,
    rank_notes,
    sentence,
    transition_rows,
)

MORE = "more samples, more seconds, or the function itself"


def refuse(reason: str, settled_by: str, **rest: Any) -> Finding:
    """No number, and why."""
    return Finding(sentence=f"No answer: {reason}.", heads=None, settled_by=settled_by, **rest)


def conclude(
    *,
    clock: Clock,
    counted: Sensitivity | None = None,
    invariance: Invariance | None = None,
    extremum: Extremum | None = None,
    transition: Transition | None = None,
    data: Prepared | None = None,
    positions: bool = False,
) -> Finding:
    """Join what counting says with what training says."""
    table = pd.DataFrame(
        counted_rows(counted) + transition_rows(transition),
        columns=list(COLUMNS),
    )
    notes = [*counted_notes(counted, invariance, extremum), *data_notes(data, positions)]
    if clock.compiling > 1:
        notes.append(
            f"Compiling the training kernel, once on a machine, took {clock.compiling:.0f} s."
        )
    rest = {"evidence": table, "seconds": clock.elapsed}
    verdict, precision = None, 0.0
    if counted is not None and counts_heads(counted, invariance, extremum):
        verdict, precision = from_count(counted.count), counted.precision
    if transition is not None:
        noise = counted.noise**2 if counted is not None else 0.0
        learnt, obstacle = judge_training(transition, clock, noise)
        if learnt is not None:
            precision = precision or transition.precision(learnt.heads)
            verdict = learnt if verdict is None else learnt.joined_with(verdict)
        elif verdict is None:
            assert obstacle is not None
            return refuse(*obstacle, notes=tuple(notes), **rest)
        else:
            assert obstacle is not None
            notes.append(f"Training adds nothing: {obstacle[0]}.")
    if verdict is None:
        reason = extremum.failed if extremum is not None else None
        count = counted.count if counted else 0
        if reason is None and counted is not None and counted.sparse and not counted.saturated:
            reason = (
                f"{count} tokens matter at once at {counted.support} of {len(counted.counts)} "
                "inputs only, and fewer elsewhere, so that even more may at others"
            )
        return refuse(
            reason or f"{count} tokens influence the target: it is no retrieval",
            "training (train=True)",
            notes=tuple(notes),
            **rest,
        )
    notes = [*rank_notes(verdict.heads, transition), *pooled_notes(transition), *notes]
    return Finding(
        sentence=sentence(verdict, transition, precision),
        heads=verdict.heads,
        settled_by="" if verdict.confidence >= CONFIDENT else MORE,
        interval=verdict.interval,
        confidence=verdict.confidence,
        precision=precision,
        layers=1,  # the networks that reach this error, or the extrema counted, need no more
        notes=tuple(notes),
        **rest,
    )


def counts_heads(
    counted: Sensitivity, invariance: Invariance | None, extremum: Extremum | None
) -> bool:
    """Few tokens matter, never more, of all lengths equally many, and it passes for extrema."""
    grows = invariance is not None and invariance.grows_with_length
    shown = extremum is not None and extremum.shown
    return counted.sparse and counted.saturated and shown and not grows


def with_depth(finding: Finding, one: float, two: SecondLayer | None) -> Finding:
    """A refusal that says whether a second layer helps; `one` is the error of one layer."""
    if two is None:
        return finding
    row = ("depth", "held-out error of two layers", None, None, None, None, two.error)
    finding = replace(finding, evidence=_with_rows(finding, [row]))
    if CLEARLY * two.error > one:
        return finding
    found = None
    if two.compared:
        found = HeadDim(two.compared, None, None, {}, (max(1, two.least), two.most))
    return replace(
        finding,
        layers=2,
        head_dim=found,
        notes=(*finding.notes, depth_note(one, two)),
        settled_by="two layers",
    )


def with_head_dim(finding: Finding, found: HeadDim | None) -> Finding:
    """The finding with the dimensions of a head."""
    if found is None:
        return finding
    rows = [
        ("head dimension", "error after the cut", finding.heads, dim, None, None, error)
        for dim, error in found.errors.items()
    ]
    return replace(
        finding,
        head_dim=found,
        notes=(*finding.notes, head_dim_note(found)),
        evidence=_with_rows(finding, rows),
    )


def _with_rows(finding: Finding, rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    more = pd.DataFrame(rows, columns=list(COLUMNS))
    records = [*finding.evidence.to_dict("records"), *more.to_dict("records")]
    return pd.DataFrame(records, columns=list(COLUMNS))


def with_lengths(finding: Finding, trend: LengthTrend) -> Finding:
    """The finding with what the lengths add to it."""
    return replace(
        finding,
        notes=(*finding.notes, *length_notes(finding.heads, trend)),
        evidence=_with_rows(finding, length_rows(trend)),
    )
