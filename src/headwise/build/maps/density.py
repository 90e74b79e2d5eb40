"""Theorem 1 of the head-count paper, made: a function of a short sequence as a retrieval target.

**Theorem 1 (density), for length ≤ 4.** There every single position is a set of length/4 positions
or more, so z_i = f_i(x(t)) for any t is a feature of the class. Take, for each position t, the
squared distances to token_dim + 1 points c_0, …, c_d of the cube that do not lie in a hyperplane;
all points of all positions differ, so the minimisers do. Distances to d + 1 such points determine a
point (trilateration): |x − c_0|² − |x − c_k|² = 2⟨c_k − c_0, x⟩ + |c_0|² − |c_k|² is linear in x
and invertible. So H(X) = F_0(z) exactly, F_0 = H ∘ (the inverse), as smooth as H: every H in C¹ on
sequences of up to four tokens is a retrieval target of intrinsic_dim ≤ length·(token_dim + 1), not
only approximated by some, and a continuous H is one with an F_0 that is only continuous (the class
asks for C¹), or a uniform limit of such targets. ∎

On longer sequences a set has several positions, minima over sets only bound distances, and the
paper's argument is a limit: no finite formula is given here.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from headwise.build.maps.declared import answer_of
from headwise.core.errors import InputError, require
from headwise.tasks.maps import Bowl, Function
from headwise.tasks.retrieval import Retrieval
from headwise.theory.checks import not_negative, whole

LONGEST = 4
MOST_NUMBERS = 10**6
_SPREAD = 0.25  # of the points about the middle of the cube


def as_retrieval(
    function: Callable[[Tensor], Tensor],
    length: int,
    token_dim: int,
    *,
    lipschitz: float | None = None,
) -> Retrieval:
    """A retrieval task whose target is `function` of (batch, length, token_dim) tokens in [0, 1].

    `lipschitz` is the function's constant in the Euclidean norm of all its numbers; the outer map's
    is derived from it.
    """
    require(callable(function), "function maps a tensor of sequences to a tensor of numbers")
    length, token_dim = whole("length", length, most=LONGEST), whole("token_dim", token_dim)
    count = length * (token_dim + 1)
    require(
        count * token_dim <= MOST_NUMBERS,
        f"{count:,} distances to points of {token_dim:,} numbers are too many; length × "
        f"(token_dim + 1) × token_dim is at most {MOST_NUMBERS:,}",
    )
    centres = _centres(length, token_dim)
    inverses = [_inverse(each) for each in centres]

    def outer(features: Tensor) -> Tensor:
        rows = features.unflatten(-1, (length, token_dim + 1))
        places = []
        for index, (matrix, shift) in enumerate(inverses):
            differences = rows[..., index, :1] - rows[..., index, 1:]
            weights, offset = features.new_tensor(matrix), features.new_tensor(shift)
            places.append((differences - offset) @ weights.T)
        # Features that no sequence has lead outside the cube, where the function is not asked.
        sequences = torch.stack(places, -2).clamp(0, 1)
        batch = sequences.shape[:-2]
        values = answer_of(function, sequences.reshape(-1, length, token_dim), "function")
        if not isinstance(values, Tensor) or values.numel() != max(1, int(np.prod(batch))):
            raise InputError("function must return one number for each sequence")
        return values.reshape(batch)

    slope = None
    if lipschitz is not None:
        # z ↦ (z_0 − z_k)_k is the matrix (1 | −I), whose norm is √(token_dim + 1).
        largest = max(float(np.linalg.norm(matrix, 2)) for matrix, _ in inverses)
        slope = not_negative("lipschitz", lipschitz) * largest * float(np.sqrt(token_dim + 1))
    rows = np.concatenate(centres)
    return Retrieval(
        features=Bowl(centres=tuple(tuple(float(x) for x in row) for row in rows)),
        length=length,
        outer=Function(function=outer, count=len(rows), lipschitz=slope),
        extrema="min",
        subsets=tuple((t,) for t in range(length) for _ in range(token_dim + 1)),
        inputs="uniform",
    )


def _centres(length: int, dim: int) -> list[np.ndarray]:
    """For each position a corner and its dim neighbours, shifted so that all points differ."""
    simplex = np.concatenate([np.zeros((1, dim)), np.eye(dim)])
    starts = 0.3 + 0.1 * np.arange(length) / length
    return [start + _SPREAD * simplex for start in starts]


def _inverse(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(matrix, shift): x = matrix·(|x − c_0|² − |x − c_k|² − shift)_k."""
    first, others = centres[0], centres[1:]
    return np.linalg.inv(2 * (others - first)), (first**2).sum() - (others**2).sum(1)
