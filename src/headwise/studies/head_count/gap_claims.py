"""What the runs say about where our numbers differ from the head-count paper's."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pandas as pd

from headwise.lab.study import NOT_TESTED, Conclusion, Verdict
from headwise.studies.cells import framed, least, matching
from headwise.studies.head_count.claims import DROP
from headwise.studies.head_count.claims import PUBLISHED as TABLES
from headwise.studies.published import published_tables

PUBLISHED = {"two-layers": TABLES["two-layers"], "three-heads": TABLES["transition"]}
SAME = 1.5  # errors within this factor of the published one are the same
BASE = "base"


@cache
def _published(part: str, heads: int) -> "pd.Series[float]":
    table = published_tables({part: PUBLISHED[part]})
    return table[table["heads"] == heads].set_index("length")["error"]


def _over_published(results: pd.DataFrame, part: str, heads: int, by: str) -> pd.DataFrame:
    """Our smallest error over the published one: a row a choice, a column a length."""
    rows = matching(results, part=part, heads=heads)
    ours = framed(least(results, [by, "length"], rows), [by, "length"])
    return ours / _published(part, heads).reindex(ours.columns).to_numpy()


def _distance(ratios: pd.DataFrame) -> "pd.Series[float]":
    """By which factor a choice is off where it is off most."""
    return np.exp(np.log(ratios.dropna()).abs().max(axis=1))


def _said(ratios: pd.DataFrame) -> str:
    return "; ".join(
        f"{choice}: " + ", ".join(f"T = {length} {ratio:.1f}×" for length, ratio in row.items())
        for choice, row in ratios.iterrows()
    )


def _blocks(results: pd.DataFrame) -> pd.DataFrame:
    return _over_published(results, "two-layers", 1, "between").dropna()


def a_block_gives_table_5(results: pd.DataFrame) -> Verdict:
    """One head in each of two layers, for each block between them."""
    ratios = _blocks(results)
    if len(ratios) < 2:
        return NOT_TESTED
    nearest = float(_distance(ratios).min())
    said = f"our smallest error over the published one with one head, {_said(ratios)}"
    return Verdict.of(nearest <= SAME, said, nearest, f"factor of the nearest (bar {SAME:g}×)")


def drop_with_that_block(results: pd.DataFrame) -> Verdict:
    """From one head to two, with the block that comes nearest to Table 5."""
    ratios = _blocks(results)
    if len(ratios) < 2:
        return NOT_TESTED
    block = _distance(ratios).idxmin()
    by, rows = ["heads", "length"], matching(results, part="two-layers", between=block)
    errors = framed(least(results, by, rows), by)
    if not {1, 2} <= set(errors.index):
        return NOT_TESTED
    falls = (errors.loc[1] / errors.loc[2]).dropna()
    if falls.empty:
        return NOT_TESTED
    listed = ", ".join(f"T = {length}: {fall:.1f}×" for length, fall in falls.items())
    theirs = float((_published("two-layers", 1) / _published("two-layers", 2)).min())
    meaning = f"least fall of the smallest error from 1 to 2 heads (bar {DROP:g}×)"
    worst = float(falls.min())
    return Verdict.of(worst >= DROP, f"{block}: {listed}", worst, meaning, theirs)


def _recipes(results: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their training changes; “base” has as few seeds as the changes have."""
    rows = matching(results, part="three-heads") & ~np.isnan(results["error"].to_numpy(float))
    names = ("part", "heads", "length", "error", "seed", "steps", "samples", "start")
    of = {name: results[name].to_numpy()[rows] for name in names}
    if not rows.any():
        return pd.DataFrame({**of, "change": []})
    changes = {
        "longer": of["steps"] > of["steps"].min(),
        "more data": of["samples"] > of["samples"].min(),
        "torch start": of["start"] == "torch",
    }
    said = np.array(
        [
            ", ".join(name for name, is_so in zip(changes, row, strict=True) if is_so) or BASE
            for row in zip(*changes.values(), strict=True)
        ],
        object,
    )
    base = said == BASE
    few = ~base | (of["seed"] <= of["seed"][~base].max(initial=-1))
    places = np.concatenate([np.flatnonzero(few), np.flatnonzero(base)])
    change = [*said[few], *["more seeds"] * int(base.sum())]
    return pd.DataFrame({**{name: of[name][places] for name in names[:4]}, "change": change})


def _closes(recipe: str, results: pd.DataFrame) -> Verdict:
    ratios = _over_published(_recipes(results), "three-heads", 3, "change").dropna()
    if recipe not in ratios.index:
        return NOT_TESTED
    shown = ratios.loc[[name for name in (BASE, recipe) if name in ratios.index]]
    off = float(_distance(ratios).loc[recipe])
    said = f"our smallest error over the published one, {_said(shown)}"
    return Verdict.of(off <= SAME, said, off, f"largest factor apart (bar {SAME:g}×)")


CLOSERS: dict[str, Callable[[pd.DataFrame], Verdict]] = {
    "Four times as many seeds": partial(_closes, "more seeds"),
    "Four times as long a training": partial(_closes, "longer"),
    "Four times as many sequences": partial(_closes, "more data"),
    "Starting as torch does": partial(_closes, "torch start"),
    "All but the seeds together": partial(_closes, "longer, more data, torch start"),
}


def finding(results: pd.DataFrame) -> Conclusion:
    """Which block is nearest to Table 5, and which training to Table 2?"""
    blocks = _blocks(results)
    trainings = _over_published(_recipes(results), "three-heads", 3, "change").dropna()
    if len(blocks) < 2 or trainings.empty:
        return Conclusion("The runs are not finished.", None, "finishing the study")
    parts = []
    for what, ratios in (("two layers, one head", blocks), ("three heads", trainings)):
        distance = _distance(ratios)
        best, off = distance.idxmin(), float(distance.min())
        word = "is explained by" if off <= SAME else "is explained by none; nearest is"
        parts.append((f"{what} {word} “{best}”", f"{off:.1f}×"))
    sentence = "; ".join(f"{said} (largest factor from the published {off})" for said, off in parts)
    answer = " ".join(said for said, _ in parts)
    return Conclusion(f"{sentence[0].upper()}{sentence[1:]}.", 1, answer=answer)
