"""How far softmax attention is from the minimum it imitates: certificates, not estimates.

A head that looks for the smallest of the values v_t attends with p = softmax(-v/τ), τ the
temperature (1/τ is the inverse temperature β), and returns Σ p_t v_t instead of min v.
"""

import math

from headwise.theory.bound import Bound, BoundVerdict, Status, readable, rounded_up
from headwise.theory.checks import one_of, positive, whole
from headwise.theory.directed import UNIT, up

_HOTTEST = 1e300  # beyond it the error may exceed every float


def softmax_min_error(count: int, temperature: float, *, sharp: bool = True) -> Bound:
    """The largest possible Σ p_t v_t - min v over `count` values of any size (never negative).

    Sharp form, τ·W((count-1)/e) with Lambert's W. Let the minimum be 0 and F = Σ p_t v_t. Then
    ∂F/∂v_t = p_t (1 + (F - v_t)/τ), which is positive at v_t = 0, so a maximiser has each other
    value either at F + τ or at infinity; a value at infinity only lowers the count, and the
    result increases in it. With all at v = F + τ, F·(1 + (count-1) e^(-v/τ)) = (count-1) v
    e^(-v/τ), that is (F/τ) e^(F/τ) = (count-1)/e. It is attained, so no smaller bound is true.

    Log form, τ·log(count), from the free energy: F - τ·H(p) = -τ·log Σ e^(-v_t/τ) ≤ 0 and the
    entropy H(p) ≤ log(count). Weaker, and easier to invert for the temperature.
    """
    count = whole("count", count, most=None)
    temperature = positive("temperature", temperature, most=_HOTTEST)
    one_of("sharp", sharp, (True, False))
    if count == 1:
        value = 0.0
    elif sharp:
        from scipy.special import wrightomega

        # W(e^x) is Wright's omega of x: no overflow, however long the sequence.
        value = up(temperature * float(wrightomega(math.log(count - 1) - 1)), 64 * UNIT)
    else:
        value = up(temperature * math.log(count))
    return Bound(
        quantity="largest error of a softmax-weighted mean as a minimum",
        side="upper",
        value=value,
        verdict=BoundVerdict.HOLDS,
        statement=(
            f"The softmax-weighted mean of {readable(count)} values at temperature "
            f"{temperature:g} exceeds their minimum by at most {rounded_up(value)}"
            + (", and some values attain it." if sharp else ".")
        ),
        source="stationary point" if sharp else "free-energy inequality",
        status=Status.DERIVED,
        assumptions=("Scores are the exact values, divided by the temperature.",),
    )


def softmax_leakage(outside: int, temperature: float, gate: float, value_range: float) -> Bound:
    """What `outside` positions that the head should ignore can add to its error.

    Their scores are lowered by `gate`; all values lie in an interval of length `value_range`.
    With Z the softmax's sum over the wanted positions, Z ≥ e^(-min/τ), each unwanted term is at
    most x = e^(-(gate - value_range)/τ) of Z. So the unwanted mass q is at most n·x/(1 + n·x),
    and the output moves by q times a difference of two means: at most q·value_range either way.
    """
    outside = whole("outside", outside, least=0)
    temperature = positive("temperature", temperature)
    gate = positive("gate", gate)
    value_range = positive("value_range", value_range)
    if outside == 0:
        mass = 0.0
    else:
        log_terms = math.log(outside) - (gate - value_range) / temperature
        # An error of the exponent is a relative error of the mass; below e^-700 it is rounded up.
        doubt = 8 * UNIT * (1 + abs(log_terms) + (gate + value_range) / temperature)
        mass = min(1.0, up(1 / (1 + math.exp(min(-log_terms, 700.0))), min(doubt, 1.0)))
    value = min(value_range, up(mass * value_range)) if outside else 0.0
    return Bound(
        quantity="largest error that ignored positions add",
        side="upper",
        value=value,
        verdict=BoundVerdict.HOLDS,
        statement=(
            f"{outside:,} positions behind a gate of {gate:g} take at most {rounded_up(mass)} of "
            f"the attention and move the output by at most {rounded_up(value)}."
        ),
        source="mass of the gated positions",
        status=Status.DERIVED,
        assumptions=(f"All values lie in an interval of length {value_range:g}.",),
    )
