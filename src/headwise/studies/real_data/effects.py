"""What heads and width do to accuracy, seed by seed: the numbers that the claims are made of."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from headwise.core.intervals import Interval
from headwise.studies.real_data.arms import FIXED_HEADS, FIXED_WIDTH, GROWING

TRAIN, HELD_OUT = "train_accuracy", "held_out_accuracy"
_VARIED = {GROWING: "heads", FIXED_WIDTH: "heads", FIXED_HEADS: "total_width"}


@dataclass(frozen=True)
class Effect:
    """The change of an accuracy from the least to the greatest value of what an arm varies."""

    arm: str
    least: int
    greatest: int
    held: str
    lengths: tuple[int, ...]
    by_seed: pd.Series
    """One number a seed, the mean over sequence lengths."""

    @property
    def interval(self) -> Interval:
        """Its mean over seeds."""
        return Interval.of(self.by_seed.to_numpy(float))

    @property
    def change(self) -> str:
        """What was changed, in words."""
        what = {GROWING: "heads, width with them", FIXED_WIDTH: "heads", FIXED_HEADS: "width"}
        return f"{what[self.arm]} {self.least}→{self.greatest}{self.held}"

    def __str__(self) -> str:
        return f"{self.change}: {in_points(self.interval)}"


def in_points(interval: Interval) -> str:
    """A change of accuracy in percentage points, with its interval."""
    mean, low, high = (100 * each for each in (interval.mean, interval.low, interval.high))
    spread = f"[{low:+.1f}, {high:+.1f}]" if low == low else "(one seed)"
    return f"{mean:+.1f} points {spread}"


def effect(results: pd.DataFrame, arm: str, score: str = TRAIN) -> Effect | None:
    """The effect in an arm, over seeds that have both ends at every length; None without two."""
    cells = _cells(results, arm, score)
    if cells is None or len(cells.columns) < 2:
        return None
    least, greatest = cells.columns[0], cells.columns[-1]
    by_length = (cells[greatest] - cells[least]).unstack("length").dropna()
    if len(by_length) < 1:
        return None
    mine = results[results["part"] == arm]
    held = {
        GROWING: "",
        FIXED_WIDTH: f" at width {mine['total_width'].iloc[0]}",
        FIXED_HEADS: f" with {mine['heads'].iloc[0]} heads",
    }[arm]
    lengths = tuple(map(int, by_length.columns))
    return Effect(arm, int(least), int(greatest), held, lengths, by_length.mean(axis=1))


def effects_of_heads(results: pd.DataFrame, score: str = TRAIN) -> dict[int, Interval]:
    """At fixed width: accuracy with so many heads minus that with one, means over lengths.

    The intervals hold jointly at 95 % or more (Bonferroni), for none was chosen beforehand.
    """
    cells = _cells(results, FIXED_WIDTH, score)
    if cells is None or len(cells.columns) < 2:
        return {}
    level = 1 - 0.05 / (len(cells.columns) - 1)
    found = {}
    for heads in cells.columns[1:]:
        gaps = (cells[heads] - cells[cells.columns[0]]).unstack("length").dropna().mean(axis=1)
        if len(gaps):
            found[int(heads)] = Interval.of(gaps.to_numpy(float), level)
    return found


def slope(results: pd.DataFrame, arm: str, score: str = TRAIN) -> dict[int, Interval]:
    """Accuracy gained with every doubling of what the arm varies, by length, over seeds."""
    cells = _cells(results, arm, score)
    if cells is None or len(cells.columns) < 2:
        return {}
    doublings = np.log2(cells.columns.to_numpy(float))
    lines = pd.Series(
        np.polyfit(doublings, cells.to_numpy(float).T, 1)[0] if len(cells) else [], cells.index
    )
    return {
        int(length): Interval.of(mine.to_numpy(float))
        for length, mine in lines.groupby(level="length")
    }


def by_length(results: pd.DataFrame, score: str = TRAIN) -> Interval | None:
    """In the paper's arm: accuracy gained with every doubling of the length, mean over heads."""
    cells = _cells(results, GROWING, score)
    if cells is None:
        return None
    wide = cells.mean(axis=1).unstack("length").dropna()
    if len(wide.columns) < 2 or wide.empty:
        return None
    doublings = np.log2(wide.columns.to_numpy(float))
    return Interval.of(np.polyfit(doublings, wide.to_numpy(float).T, 1)[0])


def effect_points(results: pd.DataFrame) -> pd.DataFrame:
    """For a figure: every effect on both accuracies, at each length."""
    rows = []
    for length, mine in results.groupby("length"):
        for score, group in ((TRAIN, "training accuracy"), (HELD_OUT, "held-out accuracy")):
            for arm in _VARIED:
                found = effect(mine, arm, score)
                if found is not None:
                    rows.append(_point(found.change, f"T = {length}", group, found.interval))
    return pd.DataFrame(rows)


def held_out_points(results: pd.DataFrame) -> pd.DataFrame:
    """For a figure: held-out accuracy of every network."""
    titles = {GROWING: "width grows with heads", FIXED_WIDTH: "fixed width"}
    rows = []
    for (length, arm, heads), mine in results.groupby(["length", "part", "heads"]):
        if arm in titles:
            found = Interval.of(mine[HELD_OUT].dropna().to_numpy(float))
            label = f"{heads} head{'s' if heads > 1 else ''}"
            rows.append(_point(label, f"T = {length}", titles[str(arm)], found))
    return pd.DataFrame(rows)


def _point(label: str, panel: str, group: str, found: Interval) -> dict[str, object]:
    bounds = {"mean": found.mean, "low": found.low, "high": found.high, "seeds": found.seeds}
    return {"label": label, "panel": panel, "group": group, **bounds}


def _cells(results: pd.DataFrame, arm: str, score: str) -> pd.DataFrame | None:
    """Rows are length and seed, columns what the arm varies; rows that lack one are left out."""
    places = ["length", "seed", _VARIED[arm]]
    mine = results.loc[(results["part"] == arm) & results["error"].notna(), [*places, score]]
    if mine.empty:
        return None
    return mine.set_index(places)[score].unstack().dropna()
