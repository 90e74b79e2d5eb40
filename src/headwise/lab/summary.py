"""Seeds to summaries: the smallest error, as the paper reports it, and means with intervals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

STUCK = 10.0  # a seed whose error is this many times the best seed's did not train


def summarise(results: pd.DataFrame, setting: Sequence[str]) -> pd.DataFrame:
    """One row a setting: runs that agree in the part and in these columns.

    `error_min` is the smallest over seeds; `error_mean` is the geometric mean, for errors span
    decades, and `error_low`..`error_high` its 95 % t-interval, over the seeds that did not diverge.
    `stuck` counts seeds more than ten times above the best.
    """
    rows = []
    names = ["part", *setting]
    for values, group in results.groupby(names, sort=True, dropna=False):
        errors = group["error"].dropna().to_numpy(float)
        row = dict(zip(names, values, strict=True))
        row |= {"seeds": len(group), "diverged": int(group["diverged"].sum())}
        row |= _statistics(errors)
        rows.append(row)
    return pd.DataFrame(rows)


def _statistics(errors: np.ndarray) -> dict[str, float | int]:
    if len(errors) == 0:
        nothing = dict.fromkeys(("error_min", "error_mean", "error_low", "error_high"), np.nan)
        return {**nothing, "stuck": 0}
    logs = np.log(np.maximum(errors, 1e-300))
    mean, low, high = logs.mean(), np.nan, np.nan
    if len(logs) > 1:
        half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
        low, high = mean - half, mean + half
    return {
        "error_min": float(errors.min()),
        "error_mean": float(np.exp(mean)),
        "error_low": float(np.exp(low)),
        "error_high": float(np.exp(high)),
        "stuck": int((errors > STUCK * errors.min()).sum()),
    }


def readable_value(value: object) -> str:
    """4.0 is 4: a column that not all runs have has become one of floats."""
    return f"{value:g}" if isinstance(value, float) else str(value)
