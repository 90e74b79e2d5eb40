"""What was measured, in sentences and as rows of the evidence table."""

import pandas as pd

from headwise.advise.probe.counting.extremum import Extremum
from headwise.advise.probe.counting.invariance import Invariance
from headwise.advise.probe.counting.sensitivity import Sensitivity
from headwise.advise.probe.descent.deeper import SecondLayer
from headwise.advise.probe.descent.head_dim import HeadDim
from headwise.advise.probe.descent.lengths import LengthTrend
from headwise.advise.probe.descent.search import HEAD_DIM, WIDE_HEAD_DIM
from headwise.advise.probe.descent.transition import Transition
from headwise.advise.probe.finding import ERROR
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import HeadVerdict


def sentence(verdict: HeadVerdict, transition: Transition | None, precision: float) -> str:
    """The answer, where the error falls, and what is too small to be seen: a sentence each."""
    heads, (low, high) = verdict.heads, verdict.interval
    confidence = verdict.confidence
    word = "head" if heads == 1 else "heads"
    parts = [
        f"{heads} {word} (95 %: {low}–{high}; confidence {100 * min(confidence, 0.99):.0f} %)."
    ]
    errors = transition.errors() if transition is not None else {}
    pooled = transition.pooled if transition is not None else None
    if heads == 1 and transition is not None and transition.forms_suffice:
        parts.append(
            "A few linear forms of the sequence, which one head that averages hands on, leave an "
            f"error of {transition.forms:.1e} of a constant's; networks with up to {max(errors)} "
            f"heads leave {min(errors.values()):.1e}."
        )
    elif heads == 1 and transition is not None and transition.averages_merge:
        parts.append(
            f"Two heads leave {errors[2]:.1e} of a constant's error, and both average, which one "
            f"can do for both; as it was trained, it leaves {transition.reached(1) or 1.0:.1e}."
        )
    elif heads == 1 and pooled is not None and pooled < errors.get(1, 1.0):
        parts.append(
            f"A mean over the tokens, which is one head, leaves an error of {pooled:.1e} of a "
            f"constant's; networks with up to {max(errors)} heads leave {min(errors.values()):.1e}."
        )
    elif heads in errors:
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
    if heads == 2 and transition is not None and transition.by_features:
        parts.append(
            f"(One head leaves {transition.in_haste.reached(1) or 1.0:.1e} when trained as long as "
            "others; trained for longer it comes close, but the two choose by different features.)"
        )
    whole = "a constant's error" if transition and transition.labels else "the target's variance"
    parts.append(f"Parts below {precision:.0e} of {whole} are not seen.")
    return " ".join(parts)


def _times(factor: float) -> str:
    return f"{factor:.0f}×" if factor >= 10 else f"{factor:.1f}×"


def rank_notes(heads: int, transition: Transition | None) -> list[str]:
    """Do the heads need more than a few dimensions?"""
    if transition is None or not transition.learnt_with(heads):
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


def head_dim_note(found: HeadDim) -> str:
    """How wide a head is to be."""
    low, high = found.interval or (found.value, found.value)
    errors = ", ".join(f"{dim}: {error:.1e}" for dim, error in found.errors.items())
    noun = "dimension" if found.value == 1 else "dimensions"
    return (
        f"A head needs {found.value} value {noun} ({low}–{high}; error by dimensions: {errors}) "
        f"and {found.query_key} query–key dimension."
    )


def depth_note(one: float, two: SecondLayer) -> str:
    """What a second layer buys, and how wide its queries are."""
    return (
        f"More than one layer: the error is {two.error:.1e} instead of {one:.1e} of a constant's "
        "where a first layer has compared every token, and the one before it, with the first and "
        f"the last; {two.compared} coordinates of the tokens matter to that ({two.least}–"
        f"{two.most}), the query–key dimension."
    )


def pooled_notes(transition: Transition | None) -> list[str]:
    """What a network without attention reaches."""
    if transition is None or transition.pooled is None:
        return []
    enough = "as good as any: one head is enough" if transition.pooling_suffices else "not enough"
    return [f"A mean over the tokens, without attention, is {enough} ({transition.pooled:.1e})."]


def counted_notes(
    counted: Sensitivity | None, invariance: Invariance | None, extremum: Extremum | None
) -> list[str]:
    """How many tokens matter, and whether their order and their number do."""
    if counted is None:
        return []
    how = {
        "gradients": "by gradients",
        "differences": "by finite differences",
        "copies": "by replacing tokens",
    }[counted.method]
    notes = [
        f"At most {counted.count} of {counted.length} tokens influence the target at once "
        f"({counted.support} of {len(counted.counts)} inputs; {how}, noise "
        f"{100 * counted.noise:.1f} % of the target's deviation)."
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
    if extremum is not None and extremum.failed:
        notes.append(f"That is no number of heads: {extremum.failed}.")
    return notes


def data_notes(data: Prepared | None, positions: bool) -> list[str]:
    """What was done to the data before training."""
    if data is None:
        return []
    notes = []
    if positions:
        notes.append("The networks were given positions: without them the error is larger.")
    if data.compressed:
        notes.append("The target's heavy tails were compressed (asinh).")
    return notes


def counted_rows(counted: Sensitivity | None) -> list[tuple[object, ...]]:
    """A row for every number of influential tokens: at how many inputs."""
    if counted is None:
        return []
    tally = pd.Series(counted.counts).value_counts().sort_index()
    return [
        (
            "sensitivity",
            "inputs with so many influential tokens",
            int(count),
            None,
            None,
            None,
            int(n),
        )
        for count, n in tally.items()
    ]


def transition_rows(transition: Transition | None) -> list[tuple[object, ...]]:
    """A row for every number measured in training."""
    rows: list[tuple[object, ...]] = []
    for descent in transition.descents if transition is not None else ():
        tables = {
            ("transition", ERROR): descent.errors,
            ("transition", "training error"): descent.train_errors,
            ("ablation", "loss factor when the head was removed"): descent.removal_costs,
            ("surrogate", "influential tokens"): descent.token_counts,
            ("surrogate", "heads that read one position"): {
                heads: count for heads, count in descent.fixed_readers.items() if count
            },
        }
        for (method, quantity), values in tables.items():
            for heads, value in values.items():
                plan = descent.plan
                rows.append((method, quantity, heads, plan.head_dim, None, plan.seed, value))
    return rows


def length_notes(heads: int | None, trend: LengthTrend) -> list[str]:
    """Does the trend with the length turn around where the heads become enough?"""
    if heads is None:
        return []
    scores = {count: trend.reversal(count) for count in (heads - 1, heads)}
    told = [f"{score:.2g} with {h} heads" for h, score in scores.items() if score is not None]
    return [f"Reversal with the length: {', '.join(told)}."] if told else []


def length_rows(trend: LengthTrend) -> list[tuple[object, ...]]:
    """A row for every length and number of heads."""
    rows: list[tuple[object, ...]] = []
    for length, descent in trend.descents.items():
        for heads, error in descent.errors.items():
            plan = descent.plan
            row = ("length", "error at this length", heads, plan.head_dim, length, plan.seed, error)
            rows.append(row)
    return rows
