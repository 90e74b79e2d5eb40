"""How far attention moves when its scores move: two inequalities, as bounds and on arrays."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headwise.core.errors import require
from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_up
from headwise.theory.checks import number, numbers, one_of, positive, scores_array, whole
from headwise.theory.directed import UNIT, up

Array = np.ndarray

VACUOUS = 0.99
"""A bound on a total variation above this says no more than that probabilities are at most one."""

_SPREAD = "epsilon is half the spread of the change within the row; a constant is free."


def attention_shift_bound(
    epsilon: Float[Array, "*shape"] | float,
) -> Float[Array, "*shape"]:
    """tanh(epsilon / 2): the most by which attention can move, in total variation.

    Proof. Centre e so that |e| ≤ ε (a constant cancels in the softmax). For a set of keys of mass
    p the new mass is largest if its keys gain ε and all others lose ε: p e^ε / (p e^ε + (1 − p)
    e^{−ε}). The gain over p vanishes at p = 0 and 1 and is largest at p / (1 − p) = e^{−ε}, where
    it is 1 / (1 + e^{−ε}) − 1 / (1 + e^ε) = tanh(ε / 2). Total variation is the largest gain of
    any set. Two keys with scores (−ε, 0) and changes (ε, −ε) attain it.
    """
    array = (
        np.asarray(epsilon)
        if isinstance(epsilon, np.ndarray)
        else np.asarray(number("epsilon", epsilon))
    )
    flat = numbers("epsilon", array)
    require(bool((flat >= 0).all()), "epsilon is half a spread: it is at least 0")
    return np.asarray(np.tanh(flat.reshape(array.shape) / 2))


def attention_shift(epsilon: float) -> Bound:
    """The most by which a row of attention moves if its scores change by ± `epsilon`."""
    epsilon = positive("epsilon", epsilon)
    value = up(float(attention_shift_bound(epsilon)))
    return _bound(
        "largest change of an attention row, in total variation",
        value,
        value > VACUOUS,
        f"Scores that change by ± {epsilon:g} move at most {rounded_up(value)} of the attention "
        "to other keys, and some scores attain it.",
        "odds ratio of two sets of keys",
        (_SPREAD,),
    )


def output_shift(epsilon: float, value_diameter: float) -> Bound:
    """The most by which a head's output moves: tanh(epsilon / 2) times the values' diameter.

    Proof. Attention a and ã have a common part of mass 1 − TV; the rest are two distributions,
    each of mass TV, whose means of the values are at most a diameter apart.
    """
    epsilon = positive("epsilon", epsilon)
    diameter = positive("value_diameter", value_diameter)
    shift = min(1.0, up(float(attention_shift_bound(epsilon))))
    moved = min(diameter, up(shift * diameter))
    return _bound(
        "largest change of a head's output",
        moved,
        shift > VACUOUS,
        f"The output moves by at most {rounded_up(shift)} of the values' diameter, "
        f"{rounded_up(moved)}.",
        "odds ratio of two sets of keys",
        (
            _SPREAD,
            f"No two values that the row can see are further apart than {diameter:g}.",
        ),
    )


def row_distance(epsilon: float, score_bound: float, length: int, *, sharp: bool = True) -> Bound:
    """Euclidean distance of the two attention rows; it falls with the length as 1/√length.

    The scores before and after lie within ± B = `score_bound` (up to a constant). Then every
    probability on the way from one to the other is at most P = e^{2B} / length, because its
    numerator is at most e^B and each of the `length` terms below it at least e^{−B}. The row
    p moves along dp = (diag p − p pᵀ) e.

    Plain form, e^{2B} ε/√length: diag p − p pᵀ ⪯ diag p, so ‖dp‖ ≤ P ‖e‖ ≤ P ε √length.

    Sharp form, e^B ε/√length: ‖dp‖² = Σ p_i² (e_i − ē)² ≤ P · Σ p_i (e_i − ē)², a variance under
    p of numbers in an interval of length 2ε, hence at most ε². So ‖dp‖ ≤ √P ε. Scores near zero,
    half of which change by ε and half by −ε, attain it as ε → 0.

    Without any bound on the scores ‖a − ã‖ ≤ √2 TV ≤ √2 tanh(ε/2); where that is smaller the
    length has bought nothing and this bound is vacuous.
    """
    epsilon = positive("epsilon", epsilon)
    score_bound = positive("score_bound", score_bound)
    length = whole("length", length)
    one_of("sharp", sharp, (True, False))
    log_value = (1 if sharp else 2) * score_bound + math.log(epsilon) - math.log(length) / 2
    value = up(math.exp(min(log_value, 700.0)), 8 * UNIT * (1 + abs(log_value) + 2 * score_bound))
    without_length = math.sqrt(2) * math.tanh(epsilon / 2)
    vacuous = value >= without_length
    if vacuous:
        statement = (
            f"The formula gives {value:.4g}{' or more' if log_value > 700 else ''}, no less than "
            f"√2·tanh(ε/2) = {without_length:.4g}, "
            "which needs neither the length nor the bound on the scores."
        )
    else:
        statement = (
            f"Over {length:,} keys with scores within ± {score_bound:g} the row moves by at most "
            f"{rounded_up(value)} in Euclidean distance; four times as many keys halve it."
        )
    return _bound(
        "largest Euclidean change of an attention row",
        value,
        vacuous,
        statement,
        "softmax Jacobian, variance form" if sharp else "softmax Jacobian ⪯ diag(p)",
        (
            _SPREAD,
            "Scores before and after lie within ± score_bound, up to a constant a row.",
            "It speaks of the attention row alone: where values share content with keys, the "
            "output's error need not fall with the length.",
        ),
    )


def saturation_bound(
    epsilon: float,
    *,
    value_diameter: float | None = None,
    score_bound: float | None = None,
    length: int | None = None,
) -> Bound:
    """How far a head's attention can move if its scores change by ± `epsilon`.

    With `value_diameter` how far its output can; with `score_bound` and `length` how far the row
    of attention can in Euclidean distance.
    """
    require((score_bound is None) == (length is None), "give score_bound and length together")
    require(
        value_diameter is None or score_bound is None,
        "ask one question: give value_diameter, or score_bound with length",
    )
    if value_diameter is not None:
        return output_shift(epsilon, value_diameter)
    if score_bound is not None and length is not None:
        return row_distance(epsilon, score_bound, length)
    return attention_shift(epsilon)


@dataclass(frozen=True)
class RowChanges:
    """For every row of scores: half the spread of its change, and how far attention moved."""

    epsilon: Float[Array, "*rows"]
    shift: Float[Array, "*rows"]
    before: Float[Array, "*rows keys"]
    after: Float[Array, "*rows keys"]

    @property
    def bound(self) -> Float[Array, "*rows"]:
        """What the certificate allows; `shift` is what was measured."""
        return attention_shift_bound(self.epsilon)


def row_changes(
    scores: Float[Array, "*rows keys"], reduced: Float[Array, "*rows keys"]
) -> RowChanges:
    """The certificate's terms and what was measured; −∞ marks keys that a row may not see."""
    scores, reduced = scores_array("scores", scores), scores_array("reduced", reduced)
    require(
        scores.ndim >= 1 and scores.shape == reduced.shape and scores.size > 0,
        f"scores and reduced must have one shape, not {scores.shape} and {reduced.shape}",
    )
    visible = np.isfinite(scores)
    require(
        bool((visible == np.isfinite(reduced)).all()) and bool(visible.any(-1).all()),
        "a row must see the same keys before and after, and at least one; mask with −inf",
    )
    change = np.subtract(reduced, scores, where=visible, out=np.zeros_like(scores))
    highest = np.where(visible, change, -np.inf).max(-1)
    lowest = np.where(visible, change, np.inf).min(-1)
    before, after = _softmax(scores), _softmax(reduced)
    return RowChanges((highest - lowest) / 2, np.abs(after - before).sum(-1) / 2, before, after)


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _bound(
    quantity: str,
    value: float,
    vacuous: bool,
    statement: str,
    source: str,
    assumptions: tuple[str, ...],
) -> Bound:
    return Bound(
        quantity=quantity,
        value=None if vacuous else value,
        verdict=BoundVerdict.VACUOUS if vacuous else BoundVerdict.HOLDS,
        statement=statement,
        source=source,
        status=Status.DERIVED,
        assumptions=assumptions,
        side="upper",
    )
