"""Where the error falls: the number of heads at the largest fall, with an interval over seeds."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

FALL = 5.0  # a fall of the error by this factor at one step is a transition
_DRAWS = 400
_SEED = 0x5EED


@dataclass(frozen=True)
class FallAt:
    """At which number of units the error falls most; `low` to `high` holds 95 % of resamples.

    `at` is None where no step falls by `FALL`: there is no transition. `fall` is the largest
    fall of the smallest error over seeds, in steps of the sweep.
    """

    at: int | None
    low: int
    high: int
    fall: float

    def __str__(self) -> str:
        if self.at is None:
            return f"none (largest fall {self.fall:.1f}×)"
        inside = "" if self.low == self.high else f" [{self.low}, {self.high}]"
        return f"{self.at}{inside} ({self.fall:.0f}×)"

    @property
    def certain(self) -> bool:
        """Do the seeds agree?"""
        return self.low == self.high


def transition(results: pd.DataFrame) -> FallAt | None:
    """Of the runs of one model on one task, over `units`; None with fewer than two of these.

    A resample draws the seeds of every setting anew, with repetition (the bootstrap).
    """
    errors = {
        int(units): np.log(np.maximum(rows["error"].dropna().to_numpy(float), 1e-300))
        for units, rows in results.groupby("units")
    }
    counts = sorted(units for units, logs in errors.items() if len(logs))
    if len(counts) < 2:
        return None
    best = np.array([errors[units].min() for units in counts])
    falls = best[:-1] - best[1:]
    fall = float(np.exp(falls.max()))
    rng = np.random.default_rng(_SEED)
    drawn = np.stack(
        [rng.choice(errors[units], (_DRAWS, len(errors[units]))).min(axis=1) for units in counts]
    )
    places = np.array(counts[1:])[(drawn[:-1] - drawn[1:]).argmax(axis=0)]
    low, high = (int(each) for each in np.quantile(places, [0.025, 0.975], method="nearest"))
    at = counts[1:][int(falls.argmax())] if fall >= FALL else None
    return FallAt(at, low, high, fall)


def transitions(results: pd.DataFrame, part: str) -> pd.DataFrame:
    """One row a model, intrinsic dimension and length of a part: `found` is the transition."""
    chosen = results[results["part"] == part] if "part" in results else results.iloc[:0]
    rows = []
    if chosen.empty:
        return pd.DataFrame(columns=["model", "dim", "length", "found"])
    for (model, dim, length), here in chosen.groupby(["model", "intrinsic_dim", "length"]):
        found = transition(here)
        if found is not None:
            rows.append({"model": model, "dim": int(dim), "length": int(length), "found": found})
    return pd.DataFrame(rows, columns=["model", "dim", "length", "found"])
