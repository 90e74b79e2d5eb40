"""What heads and width do to accuracy, seed by seed: the numbers that the claims are made of."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from headwise.core.intervals import Interval
from headwise.studies.cells import matching, mean
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
    if cells is None or len(cells.varied) < 2:
        return None
    changes = cells.scores[..., -1] - cells.scores[..., 0]
    whole = ~np.isnan(changes).any(axis=0)
    if not whole.any():
        return None
    held = ""
    if arm != GROWING:
        name, words = {
            FIXED_WIDTH: ("total_width", " at width {}"),
            FIXED_HEADS: ("heads", " with {} heads"),
        }[arm]
        held = words.format(results[name].to_numpy()[matching(results, part=arm)][0])
    by_seed = pd.Series(changes[:, whole].mean(axis=0), cells.seeds[whole])
    lengths = tuple(map(int, cells.lengths))
    return Effect(arm, int(cells.varied[0]), int(cells.varied[-1]), held, lengths, by_seed)


def effects_of_heads(results: pd.DataFrame, score: str = TRAIN) -> dict[int, Interval]:
    """At fixed width: accuracy with so many heads minus that with one, means over lengths.

    The intervals hold jointly at 95 % or more (Bonferroni), for none was chosen beforehand.
    """
    cells = _cells(results, FIXED_WIDTH, score)
    if cells is None or len(cells.varied) < 2:
        return {}
    level = 1 - 0.05 / (len(cells.varied) - 1)
    found = {}
    for place, heads in enumerate(cells.varied[1:], 1):
        gaps = (cells.scores[..., place] - cells.scores[..., 0]).mean(axis=0)
        gaps = gaps[~np.isnan(gaps)]
        if len(gaps):
            found[int(heads)] = Interval.of(gaps, level)
    return found


def slope(results: pd.DataFrame, arm: str, score: str = TRAIN) -> dict[int, Interval]:
    """Accuracy gained with every doubling of what the arm varies, by length, over seeds."""
    cells = _cells(results, arm, score)
    if cells is None or len(cells.varied) < 2:
        return {}
    doublings, found = np.log2(cells.varied.astype(float)), {}
    for length, scores in zip(cells.lengths, cells.scores, strict=True):
        known = scores[~np.isnan(scores).any(axis=1)]
        found[int(length)] = Interval.of(np.polyfit(doublings, known.T, 1)[0])
    return found


def by_length(results: pd.DataFrame, score: str = TRAIN) -> Interval | None:
    """In the paper's arm: accuracy gained with every doubling of the length, mean over heads."""
    cells = _cells(results, GROWING, score)
    if cells is None:
        return None
    means = cells.scores.mean(axis=2)
    means = means[:, ~np.isnan(means).any(axis=0)]
    if len(means) < 2 or not means.size:
        return None
    doublings = np.log2(cells.lengths.astype(float))
    return Interval.of(np.polyfit(doublings, means, 1)[0])


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


@dataclass(frozen=True)
class _Cells:
    """Scores of an arm; of a length and seed, all of them or none (NaN)."""

    lengths: np.ndarray
    seeds: np.ndarray
    varied: np.ndarray
    scores: Float[np.ndarray, "lengths seeds varied"]


def _cells(results: pd.DataFrame, arm: str, score: str) -> _Cells | None:
    """By length, seed and what the arm varies, without lengths and seeds that lack a value."""
    finished = matching(results, part=arm) & ~np.isnan(results["error"].to_numpy(float))
    (lengths, seeds, varied), scores = mean(
        results, ["length", "seed", _VARIED[arm]], finished, score
    )
    whole = ~np.isnan(scores).any(axis=2)
    if not whole.any():
        return None
    scores = np.where(whole[..., None], scores, np.nan)
    here, there = whole.any(axis=1), whole.any(axis=0)
    return _Cells(lengths[here], seeds[there], varied, scores[here][:, there])
