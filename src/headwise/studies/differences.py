"""Which of several settings is better, with intervals over seeds."""

import numpy as np
import pandas as pd
from scipy import stats

from headwise.core.intervals import Interval

ALLOCATION_PAPER = "Allocation of Parameters in Transformers, arXiv 2510.03784"


def paired(results: pd.DataFrame, first: str, second: str, level: float = 0.95) -> Interval | None:
    """Loss of part `first` minus that of part `second`, seed by seed.

    Seeds of two parts see the same batches, so that their difference is more certain than either.
    """
    losses = [
        results[results["part"] == part].set_index("seed")["error"] for part in (first, second)
    ]
    gaps = (losses[0] - losses[1]).dropna().to_numpy(float)
    return Interval.of(gaps, level) if len(gaps) else None


def pooled(results: pd.DataFrame, first: str, second: str, arm: str) -> Interval | None:
    """The same over texts and seeds together, each the mean of its arms.

    The arms of a text and seed share their batches, so that they are no sample of their own.
    """
    losses = [
        results[results["part"] == part].set_index(["text", "seed", arm])["error"]
        for part in (first, second)
    ]
    gaps = (losses[0] - losses[1]).dropna().groupby(level=["text", "seed"]).mean()
    return Interval.of(gaps.to_numpy(float)) if len(gaps) else None


def best_group(results: pd.DataFrame, column: str) -> tuple[int, list[int]]:
    """The value of `column` with the least error, and all that are not told apart from it.

    Errors span decades, so they are compared by the logarithm: Welch's interval of the difference
    of means over seeds, at 95 %, holds zero.
    """
    logs = {
        int(value): np.log(np.maximum(rows["error"].dropna().to_numpy(float), 1e-300))
        for value, rows in results.groupby(column)
    }
    logs = {value: errors for value, errors in logs.items() if len(errors)}
    best = min(logs, key=lambda value: logs[value].mean())
    group = [value for value in logs if value == best or not _told_apart(logs[value], logs[best])]
    return best, group


def _told_apart(first: np.ndarray, second: np.ndarray) -> bool:
    if min(len(first), len(second)) < 2:
        return False  # one seed shows no spread: nothing can be told
    return bool(stats.ttest_ind(first, second, equal_var=False).pvalue < 0.05)
