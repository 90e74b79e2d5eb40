"""What too few heads cost: the lower bound on parameters."""

import math
from fractions import Fraction
from typing import Literal

from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_down, rounded_up
from headwise.theory.checks import one_of, positive, whole
from headwise.theory.directed import floor_float
from headwise.theory.head_count.common import BOUNDED, PAPER, REGULAR, RELAXED, feature_sizes

SET_FRACTION = 1 / 4
"""The paper's targets have |S_i| ≥ length/4."""


def exponent_formula(
    heads: int, intrinsic_dim: int, length: int, head_dim: int, set_fraction: float
) -> Fraction:
    """k of theorem 2(2) as printed, negative values included, exactly."""
    positions = _as_written(set_fraction) * length
    return (positions - heads - intrinsic_dim + 1) / ((head_dim + 1) * heads + 1) - 1


def lower_bound_exponent(
    heads: int,
    intrinsic_dim: int,
    length: int,
    head_dim: int,
    set_fraction: float = SET_FRACTION,
    *,
    readout_layers: Literal[2, 5] = 2,
) -> Bound:
    """Theorem 2(2): with heads < intrinsic_dim, params = Ω(1/error^k); the value is k.

    Each head has one place where it responds most; with too few heads some feature's basin holds
    none. The subsequences that fit into that basin outnumber the (1/ε)^((k+1)(n+1)s) cells of
    attention outputs, so two of them collide: targets 3ε apart, head outputs ε^(k+1) apart. The
    pigeonhole counts the free positions of one S_i, which the paper takes to be length/4; with
    sets of set_fraction·length positions the same count gives the variant (derived).
    """
    intrinsic_dim, length = feature_sizes(intrinsic_dim, length)
    heads, head_dim = whole("heads", heads), whole("head_dim", head_dim)
    set_fraction = positive("set_fraction", set_fraction, most=1)
    one_of("readout_layers", readout_layers, (2, 5))
    exact = exponent_formula(heads, intrinsic_dim, length, head_dim, set_fraction)
    if readout_layers == 5:
        exact /= 4  # the paper's relaxation: Ω(1/ε^(k/4)) for a five-layer readout
    exponent = floor_float(exact)

    value: float | None = None
    if heads >= intrinsic_dim:
        verdict = BoundVerdict.NOT_APPLICABLE
        statement = (
            f"{heads} heads are no fewer than {intrinsic_dim} features: the bound is about fewer. "
        )
        if head_dim >= 2:
            statement += "Theorem 2(1) promises an efficient network here (under assumption 3)."
        else:
            statement += "Theorem 2(1) promises an efficient network from head_dim 2 on, not at 1."
    elif exact <= 0:
        verdict = BoundVerdict.VACUOUS
        first = _first_informative_length(heads, intrinsic_dim, head_dim, set_fraction)
        statement = (
            f"The formula gives k = {exponent:.4g}, which forbids nothing. With {heads} of "
            f"{intrinsic_dim} heads it says something from length {rounded_up(first)} on."
        )
    else:
        verdict, value = BoundVerdict.HOLDS, exponent
        factor = rounded_down(10**exponent) if exponent < 300 else f"10^{rounded_down(exponent)}"
        statement = (
            f"With {heads} of the {intrinsic_dim} heads needed, the parameters grow at least like "
            f"1/error^{rounded_down(exponent)}: each further digit of accuracy multiplies them by "
            f"{factor}, constants aside."
        )
    as_printed = set_fraction == SET_FRACTION
    return Bound(
        quantity="exponent k of params = Ω(1/error^k)",
        side="lower",
        value=value,
        verdict=verdict,
        statement=statement,
        source=f"{PAPER}, theorem 2(2)"
        + ("" if as_printed else f", its proof with |S_i| ≥ {set_fraction:g}·length"),
        status=Status.PROVED if as_printed else Status.DERIVED,
        assumptions=(
            f"Every feature looks at {set_fraction:g} of the {length:,} positions or more.",
            REGULAR,
            BOUNDED,
            RELAXED,
            f"The readout has {readout_layers} layers.",
        ),
    )


def _first_informative_length(
    heads: int, intrinsic_dim: int, head_dim: int, set_fraction: float
) -> int:
    """The least length with k > 0, that is set_fraction·length > (n+2)s + D."""
    threshold = ((head_dim + 2) * heads + intrinsic_dim) / _as_written(set_fraction)
    return math.floor(threshold) + 1


def _as_written(number: float) -> Fraction:
    """0.1 as one tenth, not as the binary fraction next to it."""
    return Fraction(repr(number))
