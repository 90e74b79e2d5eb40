"""What heads of low rank cannot do: a lower bound on their error that a program can compute.

Setting: two points x_1 ⟂ x_2 and a query y, uniform on the sphere S^(dim-1); the target f is the
point nearer to y; the layer is A = Σ_h M_h X φ_h(W_h X, y) with W_h of rank ≤ `rank`, any matrix
M_h, and any map φ_h to weights on the two points; the error is E‖f - A‖² (1 for A = 0).

**Theorem (derived).** E‖f - A‖² ≥ ½ Σ_{ℓ odd} η_ℓ² · max(0, 1 - heads·D(rank,ℓ)/N(dim,ℓ)), with
D(rank,ℓ) = Σ_{j = ℓ-2, ℓ, ℓ+2; j ≥ 0} C(rank+j-1, j), or C(rank+ℓ-1, ℓ) if every M_h ∝ I.

**Proof.** Let w = (x_1 - x_2)/√2 and s = (x_1 + x_2)/√2, again a uniform orthonormal pair. Then
f = (s + sgn⟨w,y⟩ w)/√2, and with g_h the difference of the two weights X φ_h = (s + g_h w)/√2.
1. *Project on w.* ‖f - A‖² ≥ ½ (sgn⟨w,y⟩ - Σ_h wᵀM_h s - Σ_h g_h wᵀM_h w)².
2. *Average over s* given w and y (Jensen). s is uniform on the sphere of w^⊥ and independent of y,
   so wᵀM_h s averages to 0. The law of W_h s depends only on W_h(I - wwᵀ)W_hᵀ, hence on W_h w: g_h
   averages to a G_h(W_h w, y). Left: ½ E(sgn⟨w,y⟩ - Σ_h (wᵀM_h w) G_h(W_h w, y))².
3. *Count dimensions* for a fixed y. As a function of w, G_h is invariant under the rotations that
   fix the row space of W_h, and so is each of its harmonic parts: those of degree j span
   C(rank+j-1, j) dimensions. Multiplied by a quadratic form, only parts of degree ℓ-2, ℓ and ℓ+2
   reach degree ℓ. So the fit's degree-ℓ part lies in a space V_ℓ that does not depend on y, of
   dimension ≤ heads·D(rank,ℓ). A constant form (M_h ∝ I) keeps the degree.
4. *Average over y.* The degree-ℓ part of sgn⟨·,y⟩ is λ_ℓ Z_ℓ(·,y). For an orthonormal basis v of
   V_ℓ its projection has the squared norm λ_ℓ² Σ_v v(y)², on average λ_ℓ² dim V_ℓ, out of
   η_ℓ² = λ_ℓ² N(dim,ℓ). The degrees are orthogonal; sum what is left. ∎

Every term is ≥ 0, so a sum that stops at some degree is still a bound.
"""

import math

from headwise.core.errors import require
from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_down
from headwise.theory.checks import positive, whole
from headwise.theory.rank.curve import HarmonicCurve, Values, check_degree, check_values
from headwise.theory.rank.harmonics import log_sign_masses, odd_degrees

PLATEAU = 0.5 * (1 - 2 / math.pi)
"""What is left in high dimension when only the linear part (degree 1) of the target is fitted."""

HIGHEST_DEGREE = 399
"""Where the sum stops unless told otherwise; going on adds at most 0.005 at dim ≤ 64."""

LARGEST_DIM = 10**6
"""Of the points; up to here the sums are exact enough in double precision."""

_SOURCE = "harmonic dimension count, proof in headwise.theory.rank.lower_bound"
_FULL_RANK = "rank paper (arXiv 2407.16153), theorem 1"


def error_lower_bound(
    dim: int,
    rank: int,
    heads: int,
    values: Values = "general",
    *,
    highest_degree: int = HIGHEST_DEGREE,
) -> Bound:
    """The least mean-square error of any layer of `heads` heads of rank `rank`."""
    dim, rank = _sizes(dim, rank)
    heads = whole("heads", heads, most=None)
    curve = _curve(dim, rank, values, highest_degree)
    value = curve.error(math.log(heads)) if rank < dim else 0.0
    many = f"{rounded_down(heads)} head{'s' if heads > 1 else ''} of rank {rank}"
    if rank == dim:
        verdict = BoundVerdict.NOT_APPLICABLE
        statement = "One head of full rank finds the nearer point exactly: nothing is forbidden."
    elif value == 0:
        verdict = BoundVerdict.VACUOUS
        statement = f"The count of harmonics up to degree {highest_degree} forbids {many} nothing."
    else:
        verdict = BoundVerdict.HOLDS
        statement = (
            f"No attention layer of {many} in dimension {dim} has a mean-square error below "
            f"{rounded_down(value)} at finding the nearer of two points. "
            "Answering zero scores 1; one head "
            f"of full rank {dim} scores 0."
        )
    kept = value if verdict is BoundVerdict.HOLDS else None
    assumptions = _assumptions(values, highest_degree)
    return _bound("least mean-square error", kept, verdict, statement, assumptions, rank == dim)


def heads_needed(
    dim: int,
    rank: int,
    error: float,
    values: Values = "general",
    *,
    highest_degree: int = HIGHEST_DEGREE,
) -> Bound:
    """The least number of heads that `error_lower_bound` does not rule out at this error.

    Rounded down where double precision does not hold the last digit, and beyond 2^40 heads to ten
    significant digits; cut at 10^4000. All of these are still a true "at least".
    """
    dim, rank = _sizes(dim, rank)
    error = positive("error", error)
    curve = _curve(dim, rank, values, highest_degree)
    value: int | None
    if rank == dim:
        value, verdict = 1, BoundVerdict.HOLDS
        statement = f"One head of full rank {dim} reaches any error, for any number of points."
    elif error >= 1:
        value, verdict = None, BoundVerdict.VACUOUS
        statement = "Answering zero has a mean-square error of 1: no head is needed."
    elif (needed := curve.heads(error)) == 1:
        value, verdict = None, BoundVerdict.VACUOUS
        says = curve.error(0.0)
        where = f"begins to say something below {rounded_down(says)}" if says else "never does"
        statement = (
            f"The bound does not rule out one head of rank {rank} at an error of {error!r}: it "
            f"{where}."
        )
    else:
        value, verdict = needed, BoundVerdict.HOLDS
        statement = (
            f"A mean-square error of {error!r} at finding the nearer of two points in dimension "
            f"{dim} takes at least {rounded_down(value)} heads of rank {rank}. One head of full "
            f"rank {dim} reaches 0."
        )
    assumptions = _assumptions(values, highest_degree)
    return _bound("least number of heads", value, verdict, statement, assumptions, rank == dim)


def low_rank_bound(
    dim: int,
    rank: int,
    *,
    heads: int | None = None,
    error: float | None = None,
    values: Values = "general",
    highest_degree: int = HIGHEST_DEGREE,
) -> Bound:
    """What heads of low rank cannot do: the least error of `heads`, or the heads for `error`."""
    require((heads is None) != (error is None), "give either heads or error")
    if heads is not None:
        return error_lower_bound(dim, rank, heads, values, highest_degree=highest_degree)
    assert error is not None
    return heads_needed(dim, rank, error, values, highest_degree=highest_degree)


def _curve(dim: int, rank: int, values: Values, highest_degree: int) -> HarmonicCurve:
    check_values(values)
    highest = check_degree(highest_degree)
    return HarmonicCurve(dim, rank, values, odd_degrees(highest), log_sign_masses(dim, highest))


def _sizes(dim: int, rank: int) -> tuple[int, int]:
    dim, rank = whole("dim", dim, least=2, most=LARGEST_DIM), whole("rank", rank)
    require(rank <= dim, f"rank must be at most dim = {dim}, not {rank}: a head cannot see more")
    return dim, rank


def _bound(
    quantity: str,
    value: int | float | None,
    verdict: BoundVerdict,
    statement: str,
    assumptions: tuple[str, ...],
    full_rank: bool,
) -> Bound:
    return Bound(
        quantity=quantity,
        value=value,
        verdict=verdict,
        statement=statement,
        source=_FULL_RANK if full_rank else _SOURCE,
        status=Status.PROVED if full_rank else Status.DERIVED,
        assumptions=assumptions,
        side="lower",
    )


def _assumptions(values: Values, highest_degree: int) -> tuple[str, ...]:
    return (
        "Two orthogonal points and a query, each uniform on the sphere; mean over inputs.",
        "One layer whose output is the sum of its heads: nothing is added to it.",
        "Value-output matrices are multiples of the identity."
        if values == "scalar"
        else "Value-output matrices are arbitrary.",
        f"Harmonics up to degree {highest_degree} are counted; more can only raise the bound.",
    )
