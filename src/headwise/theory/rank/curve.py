"""½ Σ_ℓ η_ℓ²·max(0, 1 − heads·D(rank, ℓ)/N(dim, ℓ)) as a function of heads, and its inverse.

Logarithms of the dimensions are sums of up to `highest` terms in floating point. `doubt` bounds
what that can do to them (n roundings of partial sums), and everything is computed on the safe side
of it: the value returned is certainly not above the sum, the heads certainly not above those it
asks for.
"""

import math
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from headwise.theory.checks import one_of, whole
from headwise.theory.directed import UNIT, down
from headwise.theory.rank.harmonics import log_dimensions, log_invariant_dimensions

Values = Literal["general", "scalar"]

MOST_DIGITS = 4000
"""`heads` stops counting here: Python prints no integer of more than 4300 digits."""
_COUNTED = 2**40  # up to here heads are counted one by one


class HarmonicCurve:
    """The lower bound of heads of one rank on a target whose degree-ℓ part has mass e^log_mass."""

    def __init__(
        self,
        dim: int,
        rank: int,
        values: Values,
        degrees: Int[np.ndarray, " degrees"],
        log_mass: Float[np.ndarray, " degrees"],
    ) -> None:
        highest = int(degrees[-1])
        log_dimension = log_dimensions(dim, highest)[degrees]
        log_coverage = _log_coverage(rank, degrees, values)
        largest = float(np.max(np.abs([log_dimension, log_coverage])))
        gammas = abs(math.lgamma(dim / 2)) + abs(math.lgamma((dim + 1) / 2))
        self.doubt = 8 * UNIT * ((highest + 4) * (1 + largest) + gammas)
        self.mass: Float[np.ndarray, " degrees"] = np.exp(log_mass)
        # log D(rank,ℓ)/N(dim,ℓ): the part of a degree that one head can cover
        self.log_share: Float[np.ndarray, " degrees"] = log_coverage - log_dimension

    def error(self, log_heads: float) -> float:
        """The least error of e^log_heads heads, rounded down."""
        covered = log_heads + self.log_share + self.doubt + 4 * UNIT * abs(log_heads)
        uncovered = -np.expm1(np.minimum(covered, 0))
        return down(float(0.5 * np.sum(self.mass * uncovered)), min(1.0, 4 * self.doubt))

    def heads(self, error: float) -> int:
        """The least number of heads that this curve does not rule out: it falls, so bisect."""
        if self.error(0.0) <= error:
            return 1
        low, high = 0.0, -float(self.log_share.min())
        while high - low > 1e-15 * high:
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (low, middle) if self.error(middle) <= error else (middle, high)
        if low > math.log(_COUNTED):
            return _power_of_e(low)  # ruled out itself, so at least so many are needed
        heads = round(math.exp(high))
        while self.error(math.log(heads)) > error:
            heads += 1
        while heads > 1 and self.error(math.log(heads - 1)) <= error:
            heads -= 1
        return heads


def check_values(values: Values) -> None:
    """Value–output matrices are arbitrary, or multiples of the identity."""
    one_of("values", values, ("general", "scalar"))


def check_degree(highest_degree: int) -> int:
    """The harmonics that are counted."""
    return whole("highest_degree", highest_degree, most=2**20 - 1)


def _log_coverage(rank: int, degrees: np.ndarray, values: Values) -> Float[np.ndarray, " degrees"]:
    """log D(rank, ℓ): the dimensions of degree ℓ that one head can reach."""
    log_invariant = log_invariant_dimensions(rank, int(degrees[-1]) + 2)
    if values == "scalar":
        return np.asarray(log_invariant[degrees])
    below = np.where(degrees >= 2, log_invariant[np.maximum(degrees - 2, 0)], -np.inf)
    sides = np.logaddexp(below, log_invariant[degrees + 2])
    return np.asarray(np.logaddexp(log_invariant[degrees], sides))


def _power_of_e(log_value: float) -> int:
    """e^log_value to ten digits, rounded down, as an integer of at most `MOST_DIGITS` digits."""
    log10 = log_value / math.log(10)
    if log10 >= MOST_DIGITS:
        return int(10**MOST_DIGITS)
    exponent = math.floor(log10)
    mantissa = down(10 ** (log10 - exponent), 16 * UNIT * (1 + log_value))
    return math.floor(mantissa * 10**9) * int(10 ** (exponent - 9))
