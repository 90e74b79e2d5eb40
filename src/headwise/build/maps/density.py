"""Theorem 1 of the head-count paper, made: a function of a short sequence as a retrieval target.

Features look at sets of length/4 positions or more; k is the least such number.

**Distances (length ≤ 4, k = 1).** Every single position is a set, so z_i = f_i(x(t)) for any t is
a feature of the class. Take, for each position t, the squared distances to token_dim + 1 points
c_0, …, c_d of the cube that do not lie in a hyperplane; all points of all positions differ, so the
minimisers do, and the features are regular (assumption 2). Distances to d + 1 such points determine
a point (trilateration): |x − c_0|² − |x − c_k|² = 2⟨c_k − c_0, x⟩ + |c_0|² − |c_k|² is linear in x
and invertible. So H(X) = F_0(z) exactly, F_0 = H ∘ (the inverse), as smooth as H.

**Coordinates (any length).** Affine features are in the class too (they are C²; assumption 2, which
theorem 1 does not make, fails for them). **Theorem (derived).** Every token is a linear function of
minima and maxima of its coordinates over sets of k positions or more. So every H in C¹ is a
retrieval target, exactly, with F_0 = H ∘ (that linear map).

**Proof.** One coordinate at a time. For k = 1 the minimum over {t} is x(t). For k ≥ 2 let N be a
set of n = 2k − 2 positions whose values in order are y_1 ≤ … ≤ y_n. Over all its subsets of j
positions y_i is the minimum of C(n − i, j − 1), so for j = k, …, n

    Σ_{|S| = j} min_S = Σ_{i < k} C(n − i, j − 1)·y_i,

a triangular system for the lower half y_1, …, y_(k−1). Hence Σ_j α_j Σ_{|S| = j} min_S is the sum
of the lower half, where Σ_j α_j C(n − i, j − 1) = 1 for all i < k; by symmetry maxima with the same
α_j give the upper half's. Together they are s_N = Σ_{t in N} x(t). The n + 1 first positions B have
Σ_t s_(B without t) = n·Σ_{t in B} x(t), which gives their sum and x(t) = sum − s_(B without t); and
for every later t, s_N with N = {t, 1, …, n − 1} gives x(t). B fits: n + 1 = 2k − 1 ≤ length. ∎

A continuous H is a uniform limit of functions in C¹, so these targets are dense. Beyond four tokens
the features are many (for each coordinate 16 at length 8, 86 at 12, 8,702 at 24), so there it is a
proof; a network is made of it where the outer map takes few numbers: `headwise.build.retrieval`.
"""

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Literal, NamedTuple, get_args

import numpy as np
from torch import Tensor

from headwise.build.maps.declared import answer_of
from headwise.core.errors import InputError, require
from headwise.tasks.maps import Affine, Bowl, Features, Function
from headwise.tasks.retrieval import Retrieval
from headwise.theory.checks import not_negative, one_of, whole

FeatureKind = Literal["distances", "coordinates"]
Extrema = tuple[Literal["min", "max"], ...]
LONGEST = {"distances": 4, "coordinates": 24}
MOST_NUMBERS = 10**6
_MINIMUM: Extrema = ("min",)
_BOTH: Extrema = ("min", "max")
_SPREAD = 0.25  # of the points about the middle of the cube


class _Read(NamedTuple):
    """Features of the class, and the linear map that returns the tokens from them."""

    features: Features
    extrema: Extrema
    subsets: tuple[tuple[int, ...], ...]
    weights: np.ndarray
    offsets: np.ndarray


def as_retrieval(
    function: Callable[[Tensor], Tensor],
    length: int,
    token_dim: int,
    *,
    lipschitz: float | None = None,
    curvature: float | None = None,
    features: FeatureKind = "distances",
) -> Retrieval:
    """A retrieval task whose target is `function` of (batch, length, token_dim) tokens in [0, 1].

    `lipschitz` and `curvature` are the function's constants in the Euclidean norm of all its
    numbers; the outer map's are derived from them. Features are regular "distances" to points, up
    to four tokens, or "coordinates": fewer for up to four tokens, and for up to 24.
    """
    require(callable(function), "function maps a tensor of sequences to a tensor of numbers")
    one_of("features", features, get_args(FeatureKind))
    length = whole("length", length, most=LONGEST[features])
    token_dim = whole("token_dim", token_dim)
    curvature = None if curvature is None else not_negative("curvature", curvature)
    plain = features == "coordinates" and length <= 4  # the outer map is the function itself
    require(
        curvature is None or plain,
        "second derivatives carry over to the outer map only where it is the function itself: "
        "features='coordinates' and up to four tokens",
    )
    read = _distances(length, token_dim) if features == "distances" else _sets(length, token_dim)

    def outer(values: Tensor) -> Tensor:
        weights, offsets = values.new_tensor(read.weights), values.new_tensor(read.offsets)
        # Features that no sequence has lead outside the cube, where the function is not asked.
        sequences = (values @ weights.T + offsets).clamp(0, 1)
        batch = sequences.shape[:-1]
        answers = answer_of(function, sequences.reshape(-1, length, token_dim), "function")
        if not isinstance(answers, Tensor) or answers.numel() != max(1, int(np.prod(batch))):
            raise InputError("function must return one number for each sequence")
        return answers.reshape(batch)

    slope = None
    if lipschitz is not None:
        steepest = float(np.linalg.norm(read.weights, 2)) * (1 if plain else 1 + 1e-12)
        slope = not_negative("lipschitz", lipschitz) * steepest
    return Retrieval(
        features=read.features,
        length=length,
        outer=Function(
            function=outer, count=len(read.extrema), lipschitz=slope, curvature=curvature
        ),
        extrema=read.extrema,
        subsets=read.subsets,
        inputs="uniform",
    )


def _distances(length: int, dim: int) -> _Read:
    """Squared distances to dim + 1 points at each position."""
    _check_size(length * (dim + 1), length * dim)
    simplex = np.concatenate([np.zeros((1, dim)), np.eye(dim)])
    starts = 0.3 + 0.1 * np.arange(length) / length  # all points of all positions differ
    centres = [start + _SPREAD * simplex for start in starts]
    # |x − c_0|² − |x − c_k|² = 2⟨c_k − c_0, x⟩ + shift_k, and c_k − c_0 is _SPREAD·e_k.
    differences = np.concatenate([np.ones((dim, 1)), -np.eye(dim)], axis=1) / (2 * _SPREAD)
    shifts = [(rows[0] ** 2).sum() - (rows[1:] ** 2).sum(1) for rows in centres]
    points = tuple(tuple(float(x) for x in row) for rows in centres for row in rows)
    return _Read(
        features=Bowl(centres=points),
        extrema=_MINIMUM * len(points),
        subsets=tuple((t,) for t in range(length) for _ in range(dim + 1)),
        weights=np.kron(np.eye(length), differences),
        offsets=-np.concatenate(shifts) / (2 * _SPREAD),
    )


def _sets(length: int, dim: int) -> _Read:
    """Minima and maxima of each coordinate over sets of length/4 positions or more."""
    least = -(-length // 4)
    sums = _of_singles(length) if least == 1 else _of_sums(length, least)
    sets = sorted({each for row in sums for each in row}, key=lambda each: (len(each), each))
    sides = _MINIMUM if least == 1 else _BOTH
    _check_size(len(sets) * len(sides) * dim, length * dim)
    table = np.array([[row.get(each, 0.0) for each in sets] for row in sums])
    columns = np.tile(table, (1, len(sides)))  # (length, sides × sets)
    coordinates = [tuple(float(i == j) for j in range(dim)) for i in range(dim)]
    per_set = [(row, side, each) for side in sides for each in sets for row in coordinates]
    return _Read(
        features=Affine(weights=tuple(row for row, _, _ in per_set)),
        extrema=tuple(side for _, side, _ in per_set),
        subsets=tuple(each for _, _, each in per_set),
        weights=np.kron(columns, np.eye(dim)),
        offsets=np.zeros(length * dim),
    )


_Weighted = dict[tuple[int, ...], float]


def _of_singles(length: int) -> list[_Weighted]:
    return [{(t,): 1.0} for t in range(length)]


def _of_sums(length: int, least: int) -> list[_Weighted]:
    """Each token as Σ weight·(min_S + max_S), from sums over sets of 2·least − 2 tokens."""
    size = 2 * least - 2
    counts = [[comb(size - i, j - 1) for j in range(least, size + 1)] for i in range(1, least)]
    alphas = np.linalg.solve(np.array(counts, dtype=float), np.ones(least - 1)).round()
    base = tuple(range(size + 1))

    def total(members: tuple[int, ...]) -> _Weighted:
        return {
            subset: float(alpha)
            for count, alpha in zip(range(least, size + 1), alphas, strict=True)
            for subset in combinations(members, count)
        }

    without = [total(base[:t] + base[t + 1 :]) for t in base]
    all_of_them = _combined([(1 / size, each) for each in without])
    tokens = [_combined([(1.0, all_of_them), (-1.0, each)]) for each in without]
    for later in range(size + 1, length):
        own = total((*base[: size - 1], later))
        tokens.append(_combined([(1.0, own), *((-1.0, each) for each in tokens[: size - 1])]))
    return tokens


def _combined(parts: list[tuple[float, _Weighted]]) -> _Weighted:
    found: _Weighted = {}
    for factor, weights in parts:
        for subset, weight in weights.items():
            found[subset] = found.get(subset, 0.0) + factor * weight
    return found


def _check_size(features: int, numbers: int) -> None:
    require(
        features * numbers <= MOST_NUMBERS,
        f"{features:,} features that determine {numbers:,} numbers take a matrix of "
        f"{features * numbers:,}; at most {MOST_NUMBERS:,}",
    )
