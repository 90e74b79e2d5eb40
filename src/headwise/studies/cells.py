"""Errors over seeds by setting, in numpy: claims are asked hundreds of times, on small tables.

A table of a few hundred rows costs pandas a millisecond an operation, whatever its size.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

Levels = list[np.ndarray]


def matching(results: pd.DataFrame, **values: object) -> np.ndarray:
    """Which rows have these values in these columns?"""
    found = np.ones(len(results), bool)
    for name, value in values.items():
        found &= np.asarray(results[name].to_numpy() == value, bool)
    return found


def least(
    results: pd.DataFrame, by: Sequence[str], rows: np.ndarray, column: str = "error"
) -> tuple[Levels, np.ndarray]:
    """The smallest known value of these rows by the columns `by`: their values, sorted, and a grid.

    NaN where a setting has none.
    """
    levels, places, values = _placed(results, by, rows, column)
    grid = np.full([len(each) for each in levels], np.inf)
    np.minimum.at(grid, places, values)
    return levels, np.where(np.isinf(grid) & (_counts(grid, places) == 0), np.nan, grid)


def mean(
    results: pd.DataFrame, by: Sequence[str], rows: np.ndarray, column: str = "error"
) -> tuple[Levels, np.ndarray]:
    """The same with the mean instead of the smallest."""
    levels, places, values = _placed(results, by, rows, column)
    grid = np.zeros([len(each) for each in levels])
    np.add.at(grid, places, values)
    with np.errstate(invalid="ignore"):
        return levels, grid / _counts(grid, places)


def framed(found: tuple[Levels, np.ndarray], by: Sequence[str]) -> pd.DataFrame:
    """A grid of two columns as a table: rows are values of the first, columns of the second."""
    (rows, columns), grid = found
    return pd.DataFrame(grid, pd.Index(rows, name=by[0]), pd.Index(columns, name=by[1]))


def _placed(
    results: pd.DataFrame, by: Sequence[str], rows: np.ndarray, column: str
) -> tuple[Levels, tuple[np.ndarray, ...], np.ndarray]:
    """Values of the columns, sorted; where each known row stands among them; what it holds."""
    values = results[column].to_numpy(float)
    keys: list[Any] = [results[name].to_numpy() for name in by]
    known = rows & ~np.isnan(values)
    for key in keys:
        known &= pd.notna(key)
    levels, places = [], []
    for key in keys:
        level, place = np.unique(key[known], return_inverse=True)
        levels.append(level)
        places.append(place)
    return levels, tuple(places), values[known]


def _counts(grid: np.ndarray, places: tuple[np.ndarray, ...]) -> np.ndarray:
    counts = np.zeros(grid.shape)
    np.add.at(counts, places, 1)
    return counts
