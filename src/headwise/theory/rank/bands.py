"""Theorem 3 of the rank paper: a combination of 2·dim² + 1 biased nearest neighbours.

f = Σ_k (−1)^(k+1) f_k, where f_k picks x_1 iff ⟨x_1 − x_2, y⟩ > θ_k, k = 1..2·dim² + 1: the signs
cancel but for one, so f is x_1 or x_2 by the parity of the band between thresholds that
⟨x_1 − x_2, y⟩ lies in. One full-rank head with a bias does one f_k, so 2·dim² + 1 = O(dim²) heads
do f exactly (theorem 3, `headwise.build.banded_layer`). The paper's thresholds are not at hand:
ours are equally spaced over ± 4 standard deviations of ⟨x_1 − x_2, y⟩ ~ N(0, 2).

**What low rank cannot do (derived).** The proof of `lower_bound` does not use that the target is a
sign: for a query of length ρ, f = (s + h(⟨w, y/ρ⟩) w)/√2 with h(τ) = Σ_k ± sgn(√2ρτ − θ_k), and

    E‖f − A‖² ≥ ½ Σ_{ℓ odd} η_ℓ²·max(0, 1 − heads·D(rank, ℓ)/N(dim, ℓ)),   η_ℓ² = E_ρ λ_ℓ(ρ)² N(dim,
    ℓ).

λ_ℓ = E[h(τ) P_ℓ(τ)] is a sum over jumps: with the density ∝ (1 − τ²)^((dim−3)/2) of τ,

    ∫_θ^1 P_ℓ (1 − τ²)^((dim−3)/2) dτ = (1 − θ²)^((dim−1)/2) P̃_{ℓ−1}(θ)/(dim − 1),

P̃ the polynomial of dimension dim + 2, P̃(1) = 1 (Rodrigues: both sides vanish at 1 and have the
same derivative). h is odd because the thresholds are symmetric, so even degrees vanish.
"""

import math

import numpy as np
from jaxtyping import Float

from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_down
from headwise.theory.checks import positive, whole
from headwise.theory.rank.curve import HarmonicCurve, Values, check_degree, check_values
from headwise.theory.rank.harmonics import log_dimensions, odd_degrees

REACH = 4 * math.sqrt(2)
"""The outermost thresholds: four standard deviations of ⟨x_1 − x_2, y⟩."""
LARGEST_DIM = 64
_LENGTHS = 48  # of the query, for the mean over ρ


def band_thresholds(dim: int) -> Float[np.ndarray, " thresholds"]:
    """θ_1 < … < θ_(2·dim² + 1), equally spaced and symmetric about 0."""
    dim = whole("dim", dim, least=2, most=LARGEST_DIM)
    return np.linspace(-REACH, REACH, 2 * dim**2 + 1)


def band_masses(
    dim: int, highest_degree: int, query_length: float
) -> Float[np.ndarray, " degrees"]:
    """η_ℓ² at odd ℓ for queries of one length; over all degrees they sum to 1."""
    dim, highest_degree = whole("dim", dim, least=2, most=LARGEST_DIM), check_degree(highest_degree)
    reach = max(math.sqrt(2) * positive("query_length", query_length), 1e-290)
    thresholds = band_thresholds(dim) / reach
    signs = np.where(np.arange(len(thresholds)) % 2 == 0, 1.0, -1.0)
    inside = np.abs(thresholds) < 1
    at, signs = thresholds[inside], signs[inside]
    degrees = odd_degrees(highest_degree)
    density = math.exp(math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2)) / math.sqrt(math.pi)
    weight = 2 * density / (dim - 1) * signs * (1 - at**2) ** ((dim - 1) / 2)
    before, current = np.ones_like(at), at  # P̃ of degree 0 and 1, in dimension dim + 2
    eigenvalues = np.zeros(highest_degree + 1)
    eigenvalues[1] = weight.sum()
    for degree in range(1, highest_degree):
        eigenvalues[degree + 1] = weight @ current
        following = (2 * degree + dim) * at * current - degree * before
        before, current = current, following / (degree + dim)
    log_dimension = log_dimensions(dim, highest_degree)[degrees]
    return np.asarray(eigenvalues[degrees] ** 2 * np.exp(np.minimum(log_dimension, 700.0)))


def banded_error_bound(
    dim: int, rank: int, heads: int, values: Values = "general", *, highest_degree: int = 799
) -> Bound:
    """The least mean-square error of `heads` heads of rank `rank` at theorem 3's target."""
    dim = whole("dim", dim, least=2, most=LARGEST_DIM)
    rank, heads = whole("rank", rank, most=dim), whole("heads", heads, most=None)
    check_values(values)
    highest = check_degree(highest_degree)
    exact_heads = 2 * dim**2 + 1
    value, counted = 0.0, 1.0
    if rank < dim:
        masses = np.mean(
            [band_masses(dim, highest, length) for length in _query_lengths(dim)], axis=0
        )
        counted = float(masses.sum())
        with np.errstate(divide="ignore"):
            curve = HarmonicCurve(dim, rank, values, odd_degrees(highest), np.log(masses))
        value = curve.error(math.log(heads))
    full = rank == dim
    if full:
        statement = f"{exact_heads:,} heads of full rank with biases are exact."
    elif value == 0:
        statement = f"The count of harmonics up to degree {highest} forbids nothing here."
    else:
        many = f"{rounded_down(heads)} heads" if heads > 1 else "One head"
        statement = (
            f"{many} of rank {rank} in dimension {dim} cannot have a mean-square error much below "
            f"{rounded_down(value)}; {exact_heads:,} heads of full rank with biases have 0, and "
            "answering zero scores 1."
        )
    silent = full or value == 0
    return Bound(
        quantity="least mean-square error at the banded target",
        side="lower",
        value=None if silent else value,
        verdict=(
            BoundVerdict.NOT_APPLICABLE
            if full
            else BoundVerdict.VACUOUS
            if silent
            else BoundVerdict.ESTIMATE
        ),
        statement=statement,
        source="harmonic dimension count, proof in headwise.theory.rank.bands"
        if not full
        else "rank paper (arXiv 2407.16153), theorem 3",
        status=Status.PROVED if full else Status.DERIVED,
        assumptions=(
            "Two orthogonal points, uniform on the sphere, and a standard Gaussian query.",
            "One layer whose output is the sum of its heads.",
            f"The mean over the query's length is a quadrature of {_LENGTHS} nodes: an estimate.",
            f"Harmonics up to degree {highest} are counted, {100 * counted:.3g} % of the target; "
            "more can only raise the bound.",
            "The thresholds are our choice; the paper's are not known to us.",
        ),
    )


def _query_lengths(dim: int) -> Float[np.ndarray, " nodes"]:
    """Quantiles of the length of a standard Gaussian vector, equally likely each."""
    from scipy.special import gammaincinv

    shares = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
    return np.sqrt(2 * gammaincinv(dim / 2, shares))
