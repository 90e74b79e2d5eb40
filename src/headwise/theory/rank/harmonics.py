"""Spherical harmonics on S^(dim-1): the few numbers that the rank results are made of.

Logarithms throughout: at dim 4096 the dimensions exceed every float. All come from the ratios of
neighbouring degrees, which are small rational numbers, so nothing cancels.
"""

import math

import numpy as np
from jaxtyping import Float, Int


def odd_degrees(highest: int) -> Int[np.ndarray, " degrees"]:
    """1, 3, 5, ... up to `highest`."""
    return np.arange(1, highest + 1, 2)


def log_dimensions(dim: int, highest: int) -> Float[np.ndarray, " all_degrees"]:
    """log N(dim, ℓ), ℓ = 0..highest: N = (2ℓ+dim-2)/ℓ · C(ℓ+dim-3, ℓ-1) harmonics of degree ℓ."""
    degree = np.arange(1.0, highest)
    steps = np.log((2 * degree + dim) / (2 * degree + dim - 2)) + np.log(
        (degree + dim - 2) / (degree + 1)
    )
    return np.concatenate([[0.0], math.log(dim) + np.concatenate([[0.0], np.cumsum(steps)])])


def log_invariant_dimensions(rank: int, highest: int) -> Float[np.ndarray, " all_degrees"]:
    """log C(rank+ℓ-1, ℓ) for ℓ = 0..highest: the harmonics that see only `rank` coordinates.

    Polynomials of degree ℓ that the rotations of the other dim-rank ≥ 1 coordinates v leave alone
    are polynomials in u (rank coordinates) and |v|²; a harmonic is one modulo |x|² times one of
    degree ℓ-2, which leaves as many as there are monomials of degree ℓ in u.
    """
    degree = np.arange(1.0, highest + 1)
    return np.concatenate([[0.0], np.cumsum(np.log((rank + degree - 1) / degree))])


def log_sign_eigenvalues(dim: int, highest: int) -> Float[np.ndarray, " degrees"]:
    """log |λ_ℓ| at odd ℓ: sgn⟨w,y⟩ = Σ_ℓ λ_ℓ Z_ℓ(w,y), Z_ℓ the reproducing kernel of degree ℓ.

    Funk–Hecke: λ_ℓ = E[sgn(t) P_ℓ(t)], t a coordinate of a uniform point. λ_1 = E|t| =
    Γ(dim/2)/(√π Γ((dim+1)/2)), and λ_(ℓ+2) = -λ_ℓ·ℓ/(ℓ+dim): the signs alternate.
    """
    first = math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2) - math.log(math.pi) / 2
    degree = odd_degrees(highest)[:-1]
    return first + np.concatenate([[0.0], np.cumsum(np.log(degree / (degree + dim)))])


def log_sign_masses(dim: int, highest: int) -> Float[np.ndarray, " degrees"]:
    """log η_ℓ² at odd ℓ: η_ℓ² = λ_ℓ² N(dim, ℓ) is the share of degree ℓ in sgn; they sum to 1."""
    log_dimension = log_dimensions(dim, highest)[odd_degrees(highest)]
    return np.asarray(2 * log_sign_eigenvalues(dim, highest) + log_dimension)


def zonal_sum(
    coefficients: Float[np.ndarray, " degrees"], dim: int, cosine: Float[np.ndarray, " points"]
) -> Float[np.ndarray, " points"]:
    """Σ over odd ℓ of coefficient_ℓ · P_ℓ(cosine), P_ℓ Gegenbauer's polynomial with P_ℓ(1) = 1."""
    before, current = np.ones_like(cosine), cosine
    total = np.zeros_like(cosine)
    for degree in range(1, 2 * len(coefficients)):
        if degree % 2:
            total += coefficients[degree // 2] * current
        following = (2 * degree + dim - 2) * cosine * current - degree * before
        before, current = current, following / (degree + dim - 2)
    return total
