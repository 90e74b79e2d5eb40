"""Which of several settings is better, with intervals over seeds."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr  # scipy.stats takes a second to import

from headwise.core.intervals import Interval
from headwise.studies.cells import matching

ALLOCATION_PAPER = "Allocation of Parameters in Transformers, arXiv 2510.03784"


def paired(results: pd.DataFrame, first: str, second: str, level: float = 0.95) -> Interval | None:
    """Loss of part `first` minus that of part `second`, seed by seed.

    Seeds of two parts see the same batches, so that their difference is more certain than either.
    """
    losses = [_losses(results, part, ["seed"]) for part in (first, second)]
    gaps = [losses[0][seed] - losses[1][seed] for seed in sorted(losses[0].keys() & losses[1])]
    return Interval.of(gaps, level) if gaps else None


def pooled(results: pd.DataFrame, first: str, second: str, arm: str) -> Interval | None:
    """The same over texts and seeds together, each the mean of its arms.

    The arms of a text and seed share their batches, so that they are no sample of their own.
    """
    losses = [_losses(results, part, ["text", "seed", arm]) for part in (first, second)]
    gaps: dict[tuple[Any, ...], list[float]] = {}
    for place in sorted(losses[0].keys() & losses[1]):
        gaps.setdefault(place[:2], []).append(losses[0][place] - losses[1][place])
    return Interval.of([float(np.mean(each)) for each in gaps.values()]) if gaps else None


def _losses(results: pd.DataFrame, part: str, by: list[str]) -> dict[tuple[Any, ...], float]:
    """The known errors of a part by these columns, each of which is there once."""
    errors = results["error"].to_numpy(float)
    rows = matching(results, part=part) & ~np.isnan(errors)
    places = zip(*(results[name].to_numpy()[rows].tolist() for name in by), strict=True)
    return dict(zip(places, errors[rows].tolist(), strict=True))


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
    spreads = [each.var(ddof=1) / len(each) for each in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = sum(spreads) ** 2 / sum(
            s**2 / (len(each) - 1) for s, each in zip(spreads, (first, second), strict=True)
        )
        distance = abs(first.mean() - second.mean()) / np.sqrt(sum(spreads))
    freedom = 1.0 if np.isnan(freedom) else freedom  # no spread at all
    return bool(2 * stdtr(freedom, -distance) < 0.05)
