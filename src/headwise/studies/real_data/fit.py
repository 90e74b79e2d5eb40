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
    heads, lengths, errors = _means(points)
    alpha, delta = _fit(heads, lengths, errors)
    seeds = points["seed"].unique() if "seed" in points else np.array([0])
    rng = np.random.default_rng(0xF17)
    draws = []
    for _ in range(_DRAWS if len(seeds) > 1 else 0):
        drawn = rng.choice(seeds, len(seeds))
        picked = pd.concat([points[points["seed"] == seed] for seed in drawn])
        draws.append(_fit(*_means(picked)))
    spread = np.quantile(np.array(draws or [(alpha, delta)]), (0.025, 0.975), axis=0)
    alphas, deltas = spread[:, 0], spread[:, 1]
    return DecayFit(
        alpha, delta, (float(alphas[0]), float(alphas[1])), (float(deltas[0]), float(deltas[1]))
    )


def _means(
    points: pd.DataFrame,
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    means = points.groupby(["heads", "length"])["error"].mean().reset_index()
    heads, lengths, errors = (means[name].to_numpy(float) for name in ("heads", "length", "error"))
    return heads, lengths, np.maximum(errors, 1e-9)


def _fit(
    heads: Float[np.ndarray, " p"],
    lengths: Float[np.ndarray, " p"],
    errors: Float[np.ndarray, " p"],
) -> tuple[float, float]:
    target = np.log(errors)
    best = (np.inf, 0.0, 0.0)
    for delta in DELTAS:
        columns = np.stack([np.ones_like(heads), np.log(lengths), heads / lengths**delta], 1)
        found, *_ = np.linalg.lstsq(columns, target, rcond=None)
        missed = float(np.square(columns @ found - target).sum())
        best = min(best, (missed, float(found[2]), float(delta)))
    return best[1], best[2]
