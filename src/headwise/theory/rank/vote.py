"""What a second layer buys: rank-1 heads vote, two points, and a last head takes the majority.

Head h of layer 1 has one random direction u as query and key: it votes for the point with the
larger (u·x_i)(u·y), rightly iff u·w and u·y have the sign of t = ⟨w,y⟩ between them. The angle of w
and y is π/2 - asin t, so a vote is right with probability ½ + asin|t|/π, independently of the
others. A wrong majority costs ‖x_1 - x_2‖² = 2: the mean-square error is 2·P(wrong).
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_up
from headwise.theory.checks import whole
from headwise.theory.directed import UNIT, up

_NODES = 400
_SETTING = "Two orthogonal points and a query, each uniform on the sphere; directions are random."


class VoteError(NamedTuple):
    """Three answers to one question: an estimate, the exact mean, and an upper bound."""

    estimate: Bound
    expected: Bound
    upper: Bound


def vote_error(dim: int, heads: int) -> VoteError:
    """The mean-square error of the two-layer majority vote of `heads` random rank-1 heads.

    *Estimate.* For large dim and heads, t ~ N(0, 1/dim) and the vote's margin ~ N(√heads·(2/π)|t|,
    1): P(wrong) is the angle of a Gaussian pair, (1/π) arctan((π/2)√(dim/heads)).

    *Expected.* With φ = asin|t|, whose density is ∝ cos^(dim-2) φ on [0, π/2], P(wrong | φ) is a
    binomial tail; one integral. A tie counts as half wrong.

    *Upper.* Hoeffding: P(wrong | φ) ≤ exp(-2·heads·φ²/π²); and cos φ ≤ exp(-φ²/2) gives, with
    c = 2·heads/π² + (dim-2)/2 and ∫ exp(-cφ²) ≤ ½√(π/c), the closed form
    P(wrong) ≤ Γ(dim/2)/(Γ((dim-1)/2) √c). A vote is never worse than guessing, P(wrong) ≤ ½: from
    an error of 1 on this says nothing and is called vacuous.
    """
    dim, heads = whole("dim", dim, least=2, most=10**6), whole("heads", heads, most=10**9)
    estimate = 2 / math.pi * math.atan(math.pi / 2 * math.sqrt(dim / heads))
    log_density = math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2)
    decay = 2 * heads / math.pi**2 + (dim - 2) / 2
    doubt = 16 * UNIT * (1 + abs(math.lgamma(dim / 2)) + abs(math.lgamma((dim - 1) / 2)))
    upper = up(2 * math.exp(log_density) / math.sqrt(decay), doubt)
    expected = 2 * _probability_wrong(dim, heads, decay)
    voters = f"{heads:,} voters of rank 1 in dimension {dim}"
    return VoteError(
        estimate=_bound(
            "estimated",
            estimate,
            f"{voters} have an error of about {estimate:.4f}",
            "Gaussian approximation: (2/π) arctan((π/2)√(dim/heads))",
            "dim and heads are large.",
            verdict=BoundVerdict.ESTIMATE,
        ),
        expected=_bound(
            "mean over the directions",
            expected,
            f"{voters} have an error of {expected:.4f} on average",
            "binomial tail, integrated over the angle",
            "A tie is decided at random.",
        ),
        upper=_bound(
            "upper bound",
            upper if upper < 1 else None,
            f"{voters} have an error of at most {rounded_up(upper)}"
            if upper < 1
            else f"The inequality gives {upper:.4g} for {voters}, which promises nothing",
            "Hoeffding's inequality, integrated over the angle",
            verdict=BoundVerdict.HOLDS if upper < 1 else BoundVerdict.VACUOUS,
            side="upper",
        ),
    )


def _bound(
    which: str,
    value: float | None,
    statement: str,
    source: str,
    *assumptions: str,
    verdict: BoundVerdict = BoundVerdict.HOLDS,
    side: Literal["upper", "neither"] = "neither",
) -> Bound:
    return Bound(
        quantity=f"mean-square error of the vote, {which}",
        value=value,
        verdict=verdict,
        statement=f"{statement}; guessing scores 1.",
        source=source,
        status=Status.DERIVED,
        assumptions=(_SETTING, *assumptions),
        side=side,
    )


def _probability_wrong(dim: int, heads: int, decay: float) -> float:
    from scipy.special import betainc

    # Beyond this angle density × P(wrong) ≤ exp(-decay·φ²) < 1e-17.
    largest = min(math.pi / 2, math.sqrt(40 / decay))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    angle = largest * (nodes + 1) / 2
    log_density = (dim - 2) * np.log(np.cos(angle)) + (
        math.log(2 / math.sqrt(math.pi)) + math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2)
    )
    right = 0.5 + angle / math.pi
    fewer_than_half, at_most_half = (heads + 1) // 2 - 1, heads // 2
    # P(right votes ≤ k) as an incomplete beta: `bdtr` is off by some per cent at 10⁹ heads.
    tails = (betainc(heads - k, k + 1, 1 - right) for k in (fewer_than_half, at_most_half))
    wrong = sum(tails) / 2
    return float(np.sum(weights * largest / 2 * np.exp(log_density) * wrong))
