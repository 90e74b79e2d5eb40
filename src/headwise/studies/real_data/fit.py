"""The paper's formula 1 − acc ≈ c·T^b·exp(α h/T^δ), fitted in log scale, and how sure it is.

At a given δ the formula is linear in log c, b and α, so the fit is a search over δ alone, with the
best of the others at each. Seeds are drawn with replacement to see how far the fit moves.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

DELTAS = np.linspace(-1.0, 2.0, 121)
_DRAWS = 200
_LEAST_ERRORS = 5  # four parameters need more points than that many errors


@dataclass(frozen=True)
class DecayFit:
    """α and δ of the formula, with the range of their middle 95 % over draws of the seeds."""

    alpha: float
    delta: float
    alpha_range: tuple[float, float]
    delta_range: tuple[float, float]

    @property
    def identified(self) -> bool:
        """Do the data tell δ from the ends of where it was looked for?"""
        low, high = self.delta_range
        return low > DELTAS[0] and high < DELTAS[-1] and high - low < 1.0

    def __str__(self) -> str:
        return (
            f"α = {self.alpha:.2f} [{self.alpha_range[0]:.2f}, {self.alpha_range[1]:.2f}], "
            f"δ = {self.delta:.2f} [{self.delta_range[0]:.2f}, {self.delta_range[1]:.2f}]"
        )


def fit_decay(points: pd.DataFrame) -> DecayFit | None:
    """Fit the columns `heads`, `length`, `error` (and `seed`); None where too few tell it.

    Two lengths cannot tell T^b and T^δ apart: three are needed, and three numbers of heads.
    """
    enough = points["heads"].nunique() >= 3 and points["length"].nunique() >= 3
    if not enough or len(points) < _LEAST_ERRORS:
        return None
    named = points if "seed" in points else points.assign(seed=0)
    cells = named.pivot_table(index="seed", columns=["heads", "length"], values="error")
    heads, lengths = (cells.columns.get_level_values(k).to_numpy(float) for k in (0, 1))
    errors = _drawn_means(cells.to_numpy(float))
    alphas, deltas = _fit(heads, lengths, np.log(np.maximum(errors, 1e-9)))
    (low_alpha, low), (high_alpha, high) = np.quantile(
        np.stack([alphas, deltas], 1)[1 if len(errors) > 1 else 0 :], (0.025, 0.975), axis=0
    )
    return DecayFit(
        float(alphas[0]),
        float(deltas[0]),
        (float(low_alpha), float(high_alpha)),
        (float(low), float(high)),
    )


def _drawn_means(errors: Float[np.ndarray, "seeds cells"]) -> Float[np.ndarray, "draws cells"]:
    """Means over seeds: of all of them, then of draws that fill all cells."""
    seeds = len(errors)
    rows = np.random.default_rng(0xF17).integers(0, seeds, (_DRAWS if seeds > 1 else 0, seeds))
    there = ~np.isnan(errors)
    sums, counts = np.where(there, errors, 0.0)[rows].sum(1), there[rows].sum(1)
    whole = (counts > 0).all(1)
    first = np.where(there, errors, 0.0).sum(0) / there.sum(0)
    return np.concatenate([first[None], sums[whole] / counts[whole]])


def _fit(
    heads: Float[np.ndarray, " cells"],
    lengths: Float[np.ndarray, " cells"],
    targets: Float[np.ndarray, "draws cells"],
) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, " draws"]]:
    """α and δ of every draw: least squares at each δ, for all draws at once."""
    alphas, missed = [], []
    for delta in DELTAS:
        columns = np.stack([np.ones_like(heads), np.log(lengths), heads / lengths**delta], 1)
        found = targets @ np.linalg.pinv(columns).T
        alphas.append(found[:, 2])
        missed.append(np.square(found @ columns.T - targets).sum(1))
    best = np.argmin(missed, axis=0)
    return np.array(alphas)[best, np.arange(len(targets))], DELTAS[best]
