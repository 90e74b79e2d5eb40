"""One verdict from all that was measured, in words a person can act on."""

from typing import Any

import pandas as pd

from headwise.advise.finding import COLUMNS, ERROR, Finding
from headwise.advise.invariance import Invariance
from headwise.advise.samples import Prepared, Samples
from headwise.advise.sensitivity import Sensitivity
from headwise.advise.transition import HEAD_DIM, NOTHING_LEARNT, WIDE_HEAD_DIM, Clock, Transition
from headwise.advise.verdict import CONFIDENT, Verdict, from_count

UNEXPLAINED = 0.3  # an error above this share of ignorance leaves room for what was not learnt
OVERFIT, HARMLESS = 0.25, 0.02
DOUBTFUL = 0.5
MORE = "more samples, more seconds, or the function itself"
SURE_SUPPORT = 8


def refuse(reason: str, settled_by: str, **rest: Any) -> Finding:
    """No number, and why."""
    return Finding(sentence=f"No answer: {reason}.", value=None, settled_by=settled_by, **rest)


def conclude(
    *,
    most_heads: int,
    clock: Clock,
    counted: Sensitivity | None = None,
    invariance: Invariance | None = None,
    transition: Transition | None = None,
    samples: Samples | None = None,
    data: Prepared | None = None,
    positions: bool = False,
) -> Finding:
    """Join what counting says with what training says."""
    table = pd.DataFrame(
        _counted_rows(counted) + _transition_rows(transition), columns=list(COLUMNS)
    )
    notes = [*_counted_notes(counted, invariance), *_data_notes(samples, data, positions)]
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
    notes = [*_rank_notes(verdict.heads, transition), *notes, *doubts]
    return Finding(
        sentence=_sentence(verdict, confidence, transition),
        value=verdict.heads,
        settled_by="" if confidence >= CONFIDENT else MORE,
        interval=verdict.interval,
        confidence=confidence,
        notes=tuple(notes),
        **rest,
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
        train = transition.train_error
        if train < 0.6:
            return (
                f"the networks learn the training data by heart (error {train:.2g}) and nothing "
                f"that holds for others (error {errors[best]:.2g} of a constant's)",
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
    return None


def _discounted(verdict: Verdict, transition: Transition | None) -> tuple[float, list[str]]:
    """What is not learnt, and what is learnt by heart, leaves room for heads unseen."""
    confidence, doubts = verdict.confidence, list[str]()
    if transition is None or not transition.errors():
        return confidence, doubts
    errors = transition.errors()
    error = min(errors.values())
    heads = verdict.heads if verdict.heads in errors else min(errors)
    train = transition.train_error
    if error > UNEXPLAINED:
        confidence *= DOUBTFUL
        doubts.append(f"{error:.0%} of the target stays unexplained; it may need heads of its own.")
    if error > HARMLESS and train < OVERFIT * errors[heads]:
        confidence *= DOUBTFUL
        doubts.append(
            f"The networks overfit (training error {train:.2g}, held-out {errors[heads]:.2g}): "
            "more samples may show more heads."
        )
    if not transition.in_time:
        confidence = min(confidence, 0.8)
        doubts.append("The time was over before all seeds had finished.")
    return confidence, doubts


def _sentence(verdict: Verdict, confidence: float, transition: Transition | None) -> str:
    heads, (low, high) = verdict.heads, verdict.interval
    word = "head" if heads == 1 else "heads"
    parts = [f"{heads} {word} (95 %: {low}–{high}; confidence {min(confidence, 0.99):.0%})."]
    errors = transition.errors() if transition is not None else {}
    if heads in errors:
        after = errors[heads] / min(errors[more] for more in errors if more >= heads)
        if heads - 1 in errors:
            fall = errors[heads - 1] / errors[heads]
            parts.append(
                f"Error falls {_times(fall)} from {heads - 1} to {heads} heads and "
                f"{_times(max(after, 1.0))} after, to {errors[heads]:.1e} of a constant's."
            )
        else:
            parts.append(
                f"With one head the error is {errors[heads]:.1e} of a constant's; more heads "
                f"lower it {_times(max(after, 1.0))}."
            )
    return " ".join(parts)


def _times(factor: float) -> str:
    return f"{factor:.0f}×" if factor >= 10 else f"{factor:.1f}×"


def _rank_notes(heads: int, transition: Transition | None) -> list[str]:
    """Do the heads need more than a few dimensions?"""
    if transition is None:
        return []
    narrow, wide = (
        transition.errors(HEAD_DIM).get(heads),
        transition.errors(WIDE_HEAD_DIM).get(heads),
    )
    if narrow is None or wide is None:
        return []
    enough = narrow < 2 * wide
    return [
        f"{HEAD_DIM} dimensions a head {'are enough' if enough else 'are too few'}: with {heads} "
        f"heads the error is {narrow:.1e} with {HEAD_DIM} dimensions a head and {wide:.1e} with "
        f"{WIDE_HEAD_DIM}."
    ]


def _counted_notes(counted: Sensitivity | None, invariance: Invariance | None) -> list[str]:
    if counted is None:
        return []
    how = {
        "gradients": "by gradients",
        "differences": "by finite differences",
        "copies": "by replacing tokens",
    }[counted.method]
    notes = [
        f"At most {counted.count} of {counted.length} tokens influence the target at once "
        f"({counted.support} of {len(counted.counts)} inputs; {how}, noise {counted.noise:.1%} of "
        "the target's deviation)."
    ]
    if invariance is not None:
        order = "does not matter" if invariance.permutations else "matters"
        notes.append(f"The order of the tokens {order}.")
        if len(invariance.counts_by_length) > 1:
            counts = ", ".join(
                f"{count} of {length}"
                for length, count in sorted(invariance.counts_by_length.items())
            )
            notes.append(f"Influential tokens by length: {counts}.")
    return notes


def _data_notes(samples: Samples | None, data: Prepared | None, positions: bool) -> list[str]:
    if samples is None or data is None:
        return []
    notes = []
    if positions:
        notes.append("The networks were given positions: without them the error is larger.")
    if data.compressed:
        notes.append("The target's heavy tails were compressed (asinh).")
    return notes


def _counted_rows(counted: Sensitivity | None) -> list[tuple[object, ...]]:
    if counted is None:
        return []
    tally = pd.Series(counted.counts).value_counts().sort_index()
    return [
        ("sensitivity", "inputs with so many influential tokens", int(count), None, None, int(n))
        for count, n in tally.items()
    ]


def _transition_rows(transition: Transition | None) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for descent in transition.descents if transition is not None else ():
        tables = {
            ("transition", ERROR): descent.errors,
            ("transition", "training error"): descent.train_errors,
            ("ablation", "loss factor when the head was removed"): descent.removal_costs,
            ("surrogate", "influential tokens"): descent.token_counts,
        }
        for (method, quantity), values in tables.items():
            for heads, value in values.items():
                plan = descent.plan
                rows.append((method, quantity, heads, plan.head_dim, plan.seed, value))
    return rows
