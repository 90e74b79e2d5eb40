"""Where the error falls: the number of heads at the largest fall, with an interval over seeds."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from headwise.studies.cells import matching

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
    """Of the runs of one model on one task, over `units`; None with fewer than two of these."""
    return _largest_fall(results["units"].to_numpy(), results["error"].to_numpy(float))


def transitions(results: pd.DataFrame, part: str, models: Collection[str] = ()) -> pd.DataFrame:
    """One row a model, intrinsic dimension and length of a part: `found` is the transition.

    Of these `models` only, where some are named: what is not asked for costs a resampling each.
    """
    columns = ["model", "dim", "length", "found"]
    here = matching(results, part=part) if "part" in results else np.zeros(0, bool)
    if not here.any():
        return pd.DataFrame(columns=columns)
    names = ["model", "intrinsic_dim", "length", "units", "error"]
    chosen = [results[name].to_numpy()[here] for name in names]
    units, errors = chosen[3], chosen[4].astype(float)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, place in enumerate(zip(*(each.tolist() for each in chosen[:3]), strict=True)):
        if (not models or place[0] in models) and place[1] == place[1]:  # NaN: of another task
            groups.setdefault(place, []).append(row)
    rows = [
        (model, int(dim), int(length), found)
        for (model, dim, length), mine in sorted(groups.items())
        if (found := _largest_fall(units[mine], errors[mine])) is not None
    ]
    return pd.DataFrame(rows, columns=columns)


def _largest_fall(units: np.ndarray, errors: np.ndarray) -> FallAt | None:
    """A resample draws the seeds of every setting anew, with repetition (the bootstrap)."""
    known = ~np.isnan(errors)
    units, logs = units[known], np.log(np.maximum(errors[known], 1e-300))
    counts = [int(count) for count in np.unique(units)]
    if len(counts) < 2:
        return None
    seeds = [logs[units == count] for count in counts]
    best = np.array([each.min() for each in seeds])
    falls = best[:-1] - best[1:]
    fall = float(np.exp(falls.max()))
    rng = np.random.default_rng(_SEED)
    drawn = np.stack([rng.choice(each, (_DRAWS, len(each))).min(axis=1) for each in seeds])
    places = np.array(counts[1:])[(drawn[:-1] - drawn[1:]).argmax(axis=0)]
    low, high = (int(each) for each in np.quantile(places, [0.025, 0.975], method="nearest"))
    at = counts[1:][int(falls.argmax())] if fall >= FALL else None
    return FallAt(at, low, high, fall)
