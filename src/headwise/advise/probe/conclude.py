"""One verdict from all that was measured, in words a person can act on."""

from dataclasses import replace
from typing import Any

import pandas as pd

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.counting.invariance import Invariance
from headwise.advise.probe.counting.sensitivity import Sensitivity
from headwise.advise.probe.descent.lengths import LengthTrend
from headwise.advise.probe.descent.transition import NOTHING_LEARNT, Transition
from headwise.advise.probe.finding import COLUMNS, Finding
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import CONFIDENT, HeadVerdict, from_count
from headwise.advise.probe.words import (
    counted_notes,
    counted_rows,
    data_notes,
    length_notes,
    length_rows,
    rank_notes,
    sentence,
    transition_rows,
)

UNEXPLAINED = 0.3  # an error above this share of a constant's leaves room for what was not learnt
OVERFIT = 0.25  # training error below this share of the held-out error is overfitting
DOUBTFUL = 0.5
MORE = "more samples, more seconds, or the function itself"
SURE_SUPPORT = 8


def refuse(reason: str, settled_by: str, **rest: Any) -> Finding:
    """No number, and why."""
    return Finding(sentence=f"No answer: {reason}.", heads=None, settled_by=settled_by, **rest)


def conclude(
    *,
    clock: Clock,
    counted: Sensitivity | None = None,
    invariance: Invariance | None = None,
    transition: Transition | None = None,
    data: Prepared | None = None,
    positions: bool = False,
) -> Finding:
    """Join what counting says with what training says."""
    table = pd.DataFrame(
        counted_rows(counted) + transition_rows(transition),
        columns=list(COLUMNS),
    )
    notes = [*counted_notes(counted, invariance), *data_notes(data, positions)]
    rest = {"evidence": table, "seconds": clock.elapsed}
    verdict = None
    if counted is not None and counted.sparse and not (invariance and invariance.grows_with_length):
        verdict = from_count(counted.count, counted.support >= SURE_SUPPORT)
    if transition is not None:
        obstacle = _obstacle(transition, clock)
        if obstacle is None:
            learnt = transition.verdict
            verdict = learnt if verdict is None else learnt.joined_with(verdict)
        elif verdict is None:
            return refuse(*obstacle, notes=tuple(notes), **rest)
        else:
            notes.append(f"Training adds nothing: {obstacle[0]}.")
    if verdict is None:
        return refuse(
            f"{counted.count if counted else 0} tokens influence the target: it is no retrieval",
            "training (train=True)",
            notes=tuple(notes),
            **rest,
        )
    confidence, doubts = _discounted(verdict, transition)
    if confidence < DOUBTFUL and verdict.interval[1] > verdict.interval[0] + 1:
        low, high = verdict.interval
        return refuse(
            f"the error rises step by step as heads are taken away; {low} to {high} heads are "
            "all plausible",
            "more samples, or more seconds; or there is no sharp answer for this task",
            interval=verdict.interval,
            notes=(*notes, *doubts),
            **rest,
        )
    notes = [*rank_notes(verdict.heads, transition), *notes, *doubts]
    return Finding(
        sentence=sentence(verdict, confidence, transition),
        heads=verdict.heads,
        settled_by="" if confidence >= CONFIDENT else MORE,
        interval=verdict.interval,
        confidence=confidence,
        notes=tuple(notes),
        **rest,
    )


def with_lengths(finding: Finding, trend: LengthTrend) -> Finding:
    """The finding with what the lengths add to it."""
    rows = pd.DataFrame(length_rows(trend), columns=list(COLUMNS))
    return replace(
        finding,
        notes=(*finding.notes, *length_notes(finding.heads, trend)),
        evidence=pd.DataFrame(
            [*finding.evidence.to_dict("records"), *rows.to_dict("records")], columns=list(COLUMNS)
        ),
    )


def _obstacle(transition: Transition, clock: Clock) -> tuple[str, str] | None:
    """Why training supports no answer, and what would settle it."""
    errors = transition.errors()
    if not errors:
        return (
            f"{clock.seconds:.0f} seconds were not enough for one network",
            "more seconds, or fewer or shorter sequences",
        )
    best = min(errors, key=lambda heads: errors[heads])
    if errors[best] > NOTHING_LEARNT:
        train = transition.train_error(best)
        if train < 0.6:
            return (
                f"the networks overfit: their error is {train:.2g} on the training data and "
                f"{errors[best]:.2g} on others, of a constant's",
                "more samples",
            )
        return (
            f"nothing was learnt: the held-out error is {errors[best]:.2g} of a constant's. The "
            "target is noise, or one attention layer cannot learn it",
            "less noise, more samples, or a deeper network",
        )
    verdict = transition.verdict
    if not transition.in_time and verdict.heads == min(errors) and min(errors) > 1:
        return (
            f"the time was over with {min(errors)} heads left, and none had been missed",
            "more seconds",
        )
    if verdict.heads == transition.most_heads:
        return (
            f"the error still falls at {transition.most_heads} heads",
            "a larger max_heads",
        )
    fewer = verdict.heads - 1
    if fewer in errors and transition.train_error(fewer) < OVERFIT * errors[fewer]:
        return (
            f"with {fewer} heads the networks overfit (error {transition.train_error(fewer):.1g} "
            f"on the training data, {errors[fewer]:.1g} on others), so it is not heads that are "
            "missing",
            "more samples",
        )
    return None


def _discounted(verdict: HeadVerdict, transition: Transition | None) -> tuple[float, list[str]]:
    """What is not learnt leaves room for heads unseen."""
    confidence, doubts = verdict.confidence, list[str]()
    if transition is None or not transition.errors():
        return confidence, doubts
    errors = transition.errors()
    error = min(errors.values())
    if error > UNEXPLAINED:
        confidence *= DOUBTFUL
        doubts.append(f"{error:.0%} of the target stays unexplained; it may need heads of its own.")
    if not transition.in_time:
        confidence = min(confidence, 0.8)
        doubts.append("The time was over before all seeds had finished.")
    return confidence, doubts
