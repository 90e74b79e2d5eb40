"""Least squares of a·H^(−q) + b·tail(d) for many noisy copies at once.

For given exponents the best a, b ≥ 0 has a closed form; the exponents are searched on a grid. With
weights that all copies share, everything but two products is computed once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

Array = np.ndarray

_EXPONENTS = np.geomspace(0.05, 8.0, 61)


@dataclass(frozen=True)
class ProfileGrid:
    """Candidate exponents, and the two terms of every run under each of them."""

    exponents: Float[Array, " q"]
    tail_exponents: Float[Array, " s"]
    heads: Float[Array, " runs"]
    dims: Float[Array, " runs"]
    tail: Callable[[Array], Array] | None

    @staticmethod
    def of(heads: Array, dims: Array, tail: Callable[[Array], Array] | None) -> "ProfileGrid":
        """The widest grid; a tail that is given has no exponent to search."""
        return ProfileGrid(
            _EXPONENTS, _EXPONENTS if tail is None else np.ones(1), heads, dims, tail
        )

    def terms(self) -> tuple[Float[Array, "q runs"], Float[Array, "s runs"]]:
        """H^(−q) and tail(d) of every run, for every candidate exponent."""
        head_term = self.heads ** -self.exponents[:, None]
        if self.tail is not None:
            return head_term, np.asarray(self.tail(self.dims), dtype=float)[None]
        return head_term, self.dims ** -self.tail_exponents[:, None]


def fit_all(
    grid: ProfileGrid, typical: Float[Array, " runs"], copies: Float[Array, "copies runs"]
) -> Float[Array, "copies 4"]:
    """Rows of (a, q, b, s), the best for each copy; residuals are relative to `typical`."""
    head_term, tail_term = (term / typical for term in grid.terms())
    targets = copies / typical
    ff = np.square(head_term).sum(-1)[:, None]
    gg = np.square(tail_term).sum(-1)[None, :]
    fg = head_term @ tail_term.T
    determinant = ff * gg - fg**2
    parallel = determinant <= 1e-12 * ff * gg
    safe = np.where(parallel, 1.0, determinant)
    rows = []
    for fy_all, gy_all in zip(targets @ head_term.T, targets @ tail_term.T, strict=True):
        fy, gy = fy_all[:, None], gy_all[None, :]
        a, b = (gg * fy - fg * gy) / safe, (ff * gy - fg * fy) / safe
        outside = parallel | (a < 0) | (b < 0)
        only_heads = fy**2 / ff >= gy**2 / gg  # of the two one-term fits, the better
        a = np.where(outside, np.where(only_heads, fy / ff, 0.0), a)
        b = np.where(outside, np.where(only_heads, 0.0, gy / gg), b)
        saved = 2 * (a * fy + b * gy) - (a * a * ff + 2 * a * b * fg + b * b * gg)
        i, j = np.unravel_index(int(saved.argmax()), saved.shape)
        rows.append((a[i, j], grid.exponents[i], b[i, j], grid.tail_exponents[j]))
    return np.array(rows)


def refine(grid: ProfileGrid, typical: Array, errors: Array, found: Array) -> tuple[Array, Array]:
    """The fit on ever finer grids around `found`, and its value for every run."""
    best = found[0]
    for _ in range(4):
        around = [
            np.geomspace(max(each * ratio**-1, edge[0]), min(each * ratio, edge[-1]), 21)
            for each, ratio, edge in (
                (best[1], grid.exponents[1] / grid.exponents[0], _EXPONENTS),
                (best[3], grid.exponents[1] / grid.exponents[0], _EXPONENTS),
            )
        ]
        grid = replace(
            grid,
            exponents=around[0],
            tail_exponents=around[1] if grid.tail is None else grid.tail_exponents,
        )
        best = fit_all(grid, typical, errors[None])[0]
    a, q, b, s = best
    tail = grid.dims**-s if grid.tail is None else grid.tail(grid.dims)
    return best, a * grid.heads**-q + b * tail
