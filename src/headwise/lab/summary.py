"""Seeds to summaries: the smallest error, as the paper reports it, and means with intervals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headwise.core.intervals import Interval

_EXACT = 2.0**53  # whole numbers below are floats without loss
STUCK = 10.0  # a seed whose error is this many times the best seed's did not train


def summarise(
    results: pd.DataFrame, setting: Sequence[str], geometric: bool = True
) -> pd.DataFrame:
    """One row a setting: runs that agree in the part and in these columns.

    `error_min` is the smallest over seeds; `error_mean` is the geometric mean, for errors span
    decades, and `error_low`..`error_high` its 95 % t-interval, over the seeds that did not
    diverge; `error_average` is the arithmetic mean, which papers print. `stuck` counts seeds more
    than ten times above the best that is not zero. Of differences, which may be negative, the
    mean is arithmetic and no seed counts as stuck.
    """
    rows = []
    names = ["part", *setting]
    for values, group in results.groupby(names, sort=True, dropna=False):
        errors = group["error"].to_numpy(float)
        errors = errors[np.isfinite(errors)]
        row = dict(zip(names, values, strict=True))
        row |= {"seeds": len(group), "diverged": int(group["diverged"].sum())}
        row |= _statistics(errors, geometric)
        rows.append(row)
    return pd.DataFrame(rows)


def _statistics(errors: np.ndarray, geometric: bool) -> dict[str, float | int]:
    if geometric:
        above_zero = errors[errors > 0]
        stuck = int((errors > STUCK * above_zero.min(initial=np.inf)).sum())
        if len(above_zero) < len(errors):  # with a zero it is zero, and there is no interval
            mean, low, high = 0.0 if (errors >= 0).all() else np.nan, np.nan, np.nan
        else:
            found = Interval.of(np.log(errors))
            mean, low, high = np.exp([found.mean, found.low, found.high])
    else:
        found = Interval.of(errors)
        mean, low, high, stuck = found.mean, found.low, found.high, 0
    return {
        "error_min": float(errors.min()) if len(errors) else np.nan,
        "error_mean": float(mean),
        "error_average": float(errors.mean()) if len(errors) else np.nan,
        "error_low": float(low),
        "error_high": float(high),
        "stuck": stuck,
    }


def mean_error(errors: np.ndarray, geometric: bool = True) -> float:
    """The mean over seeds that a summary has."""
    return float(_statistics(errors[np.isfinite(errors)], geometric)["error_mean"])


def readable_value(value: object) -> str:
    """4.0 is 4: a column that not all runs have has become one of floats."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < _EXACT else f"{value:g}"
