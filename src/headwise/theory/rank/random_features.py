"""What random rank-1 heads reach: hard attention along random directions, combined optimally.

Head h returns x_i with the larger (k_h·x_i)(q_h·y); the layer is Σ_h a_h × that point. With the
notation of `lower_bound`, head h returns (s + sgn(k_h·w) sgn(q_h·y) w)/√2, so (Sheppard's formula
E[sgn(u·w) sgn(v·w)] = (2/π) asin⟨u,v⟩, for w and for y)

    C_hh' = E⟨head_h, head_h'⟩ = ½ + (2/π²) asin⟨q_h,q_h'⟩ asin⟨k_h,k_h'⟩,
    b_h   = E⟨f, head_h⟩ = ½ + ½ E[sgn⟨w,y⟩ sgn(k_h·w) sgn(q_h·y)] = ½ + ½ Σ_ℓ λ_ℓ³ Z_ℓ(q_h,k_h),

because averaging sgn⟨w,y⟩ against a harmonic of degree ℓ multiplies it by λ_ℓ. Z_ℓ = N(dim,ℓ)·P_ℓ.
The error 1 - 2a·b + aᵀCa is least at a = C⁻¹b: 1 - bᵀC⁻¹b.

The part along s forces Σ a_h = 1, so heads that all look the same way (k_h = q_h) cannot be scaled
up; heads with k_h = -q_h and negative weights free them.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from headwise.core.errors import require
from headwise.theory.bound import Bound, BoundVerdict, Status
from headwise.theory.checks import numbers
from headwise.theory.rank.harmonics import (
    log_dimensions,
    log_sign_eigenvalues,
    odd_degrees,
    zonal_sum,
)

MOST_HEADS = 2**15
_HIGHEST_DEGREE = 999  # the terms fall like ℓ^-3 or faster: what is left out is below 1e-6
_BLOCK = 1024


@dataclass(frozen=True)
class RandomFeatures:
    """The best weights of given rank-1 heads, and the mean-square error they reach.

    `layer_error` is what a layer with these weights has: another number only where the formula
    that `error` comes from is none for the layer (`fit_with_short_keys`).
    """

    weights: Float[np.ndarray, " heads"]
    error: float
    layer_error: float


def random_features_error(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> Bound:
    """The mean-square error of the best combination of these hard rank-1 heads."""
    value = fit_random_features(queries, keys).error
    heads, dim = np.shape(queries)
    return Bound(
        quantity="mean-square error of the best combination",
        value=value,
        verdict=BoundVerdict.HOLDS,
        statement=(
            f"{heads:,} hard heads of rank 1 with these directions in dimension {dim}, combined "
            f"with the best scalar weights, find the nearer of two points with error {value:.4f}."
        ),
        source="closed form, proof in headwise.theory.rank.random_features",
        status=Status.DERIVED,
        assumptions=(
            "Two orthogonal points and a query, each uniform on the sphere; mean over inputs.",
            "Hard attention; value-output matrices are multiples of the identity.",
        ),
    )


def fit_random_features(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> RandomFeatures:
    """a = C⁻¹b by conjugate gradients, which repeated or dependent heads do not disturb."""
    queries, keys = _directions("queries", queries), _directions("keys", keys)
    require(
        queries.shape == keys.shape,
        f"queries and keys must have one shape, not {queries.shape} and {keys.shape}",
    )
    return _fit(queries, keys)


def fit_with_short_keys(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> RandomFeatures:
    """What the authors' script computes: the closed form, with keys that are not of length one.

    The script projects a random direction off q_h, adds it to cos θ·q_h and leaves the sum as
    short as it is. A hard head does not depend on the length of its key, so the layer is none the
    better; the formula's asin⟨k_h,k_h'⟩ does, so the error it gives is none of the layer's. The
    `error` is the formula's, `layer_error` the true one of the weights that come of it.
    """
    unit, long = _directions("queries", queries), _directions("keys", keys)
    lengths = np.linalg.norm(np.asarray(keys, dtype=float), axis=1, keepdims=True)
    require(
        unit.shape == long.shape,
        f"queries and keys must have one shape, not {unit.shape} and {long.shape}",
    )
    fitted = _fit(unit, long * np.minimum(lengths, 1.0))
    return replace(fitted, layer_error=_error(unit, long, fitted.weights))


def _fit(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> RandomFeatures:
    from scipy.sparse.linalg import cg

    gram, target = _gram(queries, keys), _target(queries, keys)
    weights, _ = cg(gram, target, rtol=1e-8, maxiter=1000)
    # The error of the weights at hand, not 1 - b·a: true even where the solver stopped early.
    error = float(1 - 2 * target @ weights + weights @ (gram @ weights))
    return RandomFeatures(weights=weights, error=error, layer_error=error)


def _error(
    queries: Float[np.ndarray, "heads dim"],
    keys: Float[np.ndarray, "heads dim"],
    weights: Float[np.ndarray, " heads"],
) -> float:
    """1 − 2a·b + aᵀCa of any weights, the matrix C taken a block of rows at a time."""
    total = 1 - 2 * _target(queries, keys) @ weights
    for start in range(0, len(queries), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = _angles(queries[rows], queries) * _angles(keys[rows], keys)
        total += weights[rows] @ ((0.5 + (2 / np.pi**2) * block) @ weights)
    return float(total)


def _gram(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> Float[np.ndarray, "heads heads"]:
    heads = len(queries)
    gram = np.empty((heads, heads))
    for start in range(0, heads, _BLOCK):  # blocks of the upper triangle, mirrored
        rows = slice(start, start + _BLOCK)
        block = _angles(queries[rows], queries[start:])
        block *= _angles(keys[rows], keys[start:])
        gram[rows, start:] = 0.5 + (2 / np.pi**2) * block
        gram[start:, rows] = gram[rows, start:].T
    return gram


def _angles(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.asarray(np.arcsin(np.clip(left @ right.T, -1, 1)))


def _target(
    queries: Float[np.ndarray, "heads dim"], keys: Float[np.ndarray, "heads dim"]
) -> Float[np.ndarray, " heads"]:
    dim = queries.shape[1]
    degrees = odd_degrees(_HIGHEST_DEGREE)
    log_dimension = log_dimensions(dim, _HIGHEST_DEGREE)[degrees]
    sizes = np.exp(3 * log_sign_eigenvalues(dim, _HIGHEST_DEGREE) + log_dimension)
    signs = np.where(degrees % 4 == 1, 1, -1)
    cosine = np.clip(np.sum(queries * keys, axis=1), -1, 1)
    return 0.5 + 0.5 * zonal_sum(signs * sizes, dim, cosine)


def _directions(name: str, vectors: np.ndarray) -> Float[np.ndarray, "heads dim"]:
    flat = numbers(name, vectors)
    rows: np.ndarray = flat.reshape(np.asarray(vectors).shape)
    require(
        rows.ndim == 2 and len(rows) > 0 and rows.shape[-1] >= 2,
        f"{name} must be an array of heads × dim with dim ≥ 2, not of shape {rows.shape}",
    )
    gigabytes = 8e-9 * len(rows) ** 2
    require(
        len(rows) <= MOST_HEADS,
        f"{len(rows):,} heads need a matrix of {gigabytes:,.0f} GB; at most {MOST_HEADS:,}",
    )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    require(
        bool(np.all(np.isfinite(norms)) and np.all(norms > 0)),
        f"{name} must be finite and not zero: each row is a direction",
    )
    return np.asarray(rows / norms)
