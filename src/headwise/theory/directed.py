"""Rounding that keeps a bound a bound: lower bounds go down, upper bounds up."""

import math
from fractions import Fraction

UNIT = 2.0**-53
"""Unit round-off of double precision."""


def down(value: float, relative: float = 8 * UNIT) -> float:
    """A float that is certainly not above a number ≥ 0 known within a relative error."""
    return max(0.0, math.nextafter(value * (1 - relative), -math.inf))


def up(value: float, relative: float = 8 * UNIT) -> float:
    """A float that is certainly not below a number ≥ 0 known within a relative error.

    A 0 may be a number that underflowed: it becomes the least float above it.
    """
    return math.nextafter(value * (1 + relative), math.inf)


def floor_float(exact: Fraction) -> float:
    """The largest float that is not above a fraction."""
    try:
        near = float(exact)
    except OverflowError:
        return math.nextafter(math.inf, 0)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)
