"""Few wide heads or many narrow ones, at a fixed heads × dimension, for linear targets of the past.

`extraction` says what no layer of H heads of dimension n can do at y(t) = Σ_lag K_lag x(t − lag).
Here is what some layer does, so that the two enclose the best split of a budget H·n.

**Theorem (derived).** With σ_i(lag) the singular values of K_lag, a layer of H heads of dimension n
that attend to one lag each has mean-square error

    Σ_lag Σ_i σ_i(lag)²  −  the sum of the H largest of  g_j(lag) = Σ_{(j−1)n < i ≤ jn} σ_i(lag)²,

and a layer of heads as wide as the matrices (n ≥ out or n ≥ in) has the error Σ_{k ≥ H} σ_k² of the
lags × (out·in) unfolding, that of one head fewer in `extraction_bound`, or Σ_{k > H} σ_k², that
bound itself, if the H leading left singular vectors span one that is positive at every lag used.

**Proof.** k heads on one lag have value–output maps that add up to any matrix of rank ≤ k·n, so the
best leaves Σ_{i > kn} σ_i² (Eckart and Young): the j-th head on a lag gains g_j(lag), which falls
with j. So the H largest gains are gains of the first heads on each lag, and can be had together.
White noise makes the errors of the lags add up. For the second: H − 1 patterns of any sign are
spanned by H distributions, one of them uniform (see `extraction`). A positive u in the span makes
every u + c·v positive for small c, so H of those span it, and scaled they are distributions. ∎

At the paper's 4-gram with full matrices every split with 4 heads or more whose dimension divides
the matrices' rank can be exact: its bound predicts 32 heads, its experiment is best at 8, and for a
linear target neither is forbidden nor preferred by what one layer can represent. The paper's own
bound (arXiv 2510.03784, its equation 3) is not here: its constants are not known to us.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headwise.core.lines import in_columns, wrapped
from headwise.core.shown import Printed, Tabled
from headwise.theory.allocation.extraction import Kernel, as_kernel, spectra, unreached
from headwise.theory.bound import rounded_down, rounded_up
from headwise.theory.checks import whole
from headwise.theory.directed import down, up

MOST_BUDGET = 10**6
_DOUBT = 1e-12  # of the whole energy: singular values are known within a few units of the largest


@dataclass(frozen=True)
class Split:
    """`heads` × `head_dim`: no layer errs less than `forbidden_below`, some no more than `reached`.

    `may_be_best`: no other split is proved to be better.
    """

    heads: int
    head_dim: int
    forbidden_below: float
    reached: float
    may_be_best: bool


@dataclass(frozen=True)
class ExtractionSplits(Printed, Tabled):
    """Every way to split a budget of heads × dimension; errors are mean squares, of `energy`."""

    budget: int
    energy: float
    splits: tuple[Split, ...]

    @property
    def best(self) -> tuple[int, ...]:
        """The numbers of heads that may be best: one where the question is decided."""
        return tuple(each.heads for each in self.splits if each.may_be_best)

    @property
    def sentence(self) -> str:
        """What is proved of the best number of heads."""
        names = ", ".join(f"{heads:,}" for heads in self.best)
        if len(self.best) == 1:
            return f"The best is {names} head{'s' if self.best[0] > 1 else ''}."
        exact = [each.heads for each in self.splits if self._exact(each)]
        if exact == list(self.best):
            return f"Layers of {names} heads can be exact, as far as double precision tells."
        return f"What is proved leaves open which of {names} heads is best."

    def _exact(self, split: Split) -> bool:
        return split.reached <= 4 * _DOUBT * self.energy or self.energy == 0

    def records(self) -> list[dict[str, Any]]:
        """One row a split."""
        return [vars(each).copy() for each in self.splits]

    def __str__(self) -> str:
        cells = [["heads", "dimension", "no error below", "some layer reaches", "may be best"]]
        for each in self.splits:
            low = rounded_down(each.forbidden_below)
            high = "0" if self._exact(each) else rounded_up(each.reached)
            marked = "yes" if each.may_be_best else "no"
            cells.append([f"{each.heads:,}", f"{each.head_dim:,}", low, high, marked])
        return "\n".join(
            [
                *wrapped(
                    f"heads × dimension = {self.budget:,}: mean-square error of one layer, of "
                    f"{self.energy:.4g} in all"
                ),
                *in_columns(cells),
                *wrapped(self.sentence),
                *wrapped(
                    "Derived, proof in headwise.theory.allocation.splits; linear target, white "
                    "noise, attention by position. The allocation paper's own bound is not known "
                    "to us."
                ),
            ]
        )


def extraction_splits(kernel: Kernel, budget: int) -> ExtractionSplits:
    """All splits of a budget of heads × dimension at a linear target: forbidden, and reached.

    Attention is by position, with any weights; a head that attends to one lag needs scores of rank
    two, such as −(s − t + lag)² but for a row's constant, or a bias by relative position.
    """
    matrices = as_kernel(kernel)
    budget = whole("budget", budget, most=MOST_BUDGET)
    energy = float(np.square(matrices).sum())
    sizes, by_lag = spectra(matrices), np.square(np.linalg.svd(matrices, compute_uv=False))
    in_time = matrices.reshape(len(matrices), -1)
    used = np.linalg.svd(in_time[in_time.any(1)], full_matrices=False)[0]
    found = []
    for heads in (each for each in range(1, budget + 1) if budget % each == 0):
        dim = budget // heads
        least = max(0.0, max(unreached(sizes, heads, dim)) - _DOUBT * energy)
        reached = _one_lag_each(by_lag, heads, dim)
        if dim >= min(matrices.shape[1:]):
            patterns = heads if _has_positive(used, heads) else heads - 1
            reached = min(reached, unreached(sizes, patterns, dim)[0])
        found.append((heads, dim, down(least), up(reached + _DOUBT * energy)))
    # What rounding may hide does not tell two splits apart.
    lowest = min(reached for *_, reached in found) + 4 * _DOUBT * energy
    return ExtractionSplits(
        budget, energy, tuple(Split(*each, may_be_best=each[2] <= lowest) for each in found)
    )


def _one_lag_each(squares: Float[np.ndarray, "lags rank"], heads: int, head_dim: int) -> float:
    """The error of heads that attend to one lag each, given to the lags where they gain most."""
    head_dim = min(head_dim, squares.shape[1])
    missing = -squares.shape[1] % head_dim
    blocks = np.pad(squares, ((0, 0), (0, missing))).reshape(len(squares), -1, head_dim)
    gains = np.sort(blocks.sum(-1).ravel())
    return float(gains[: max(0, len(gains) - heads)].sum())


def _has_positive(vectors: Float[np.ndarray, "lags rank"], count: int) -> bool:
    """Whether the first `count` columns span a vector that is positive everywhere."""
    from scipy.optimize import linprog

    leading = vectors[:, :count]
    if leading.size == 0:
        return False
    ones = np.ones(len(leading))
    found = linprog(np.zeros(leading.shape[1]), -leading, -ones, bounds=(None, None))
    return bool(found.status == 0 and (leading @ found.x > 0.5).all())
