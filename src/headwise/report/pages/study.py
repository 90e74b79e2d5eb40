"""The page of a study: the answer, its claims and figures, our numbers beside the published."""

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from headwise.lab.result import StudyResult
from headwise.lab.study import NOT_TESTED, Claim, Verdict, with_confidence
from headwise.lab.summary import readable_value
from headwise.lab.work import versions
from headwise.report.figures import not_drawn
from headwise.report.pages.content import Chip, Live, Page, PageFigure, PageTable, Point

MOODS = {"holds": "good", "does not hold": "bad", "cannot tell": "open", "not tested": "untested"}
"""How a verdict looks on a page."""
_COUNTED = {"holds": ("holds", "hold"), "does not hold": ("fails", "fail")}


def study_page(result: StudyResult, live: Live | None = None) -> Page:
    """Everything that the page of a result holds."""
    study, conclusion = result.study, result.conclusion
    titles = {figure.name: figure for figure in study.figures}
    return Page(
        title=study.title,
        kicker=f"{study.paper} · study {study.name}, tier {result.tier}".removeprefix(" · "),
        question=study.question,
        answer=conclusion.sentence,
        conclusive=conclusion.conclusive,
        settled_by=conclusion.settled_by,
        chips=verdict_chips(result),
        sentences=not_drawn(result),
        figures=[
            PageFigure(
                name=f"{study.name}-{name}",
                title=titles[name].title,
                drawn=drawn,
                caption=drawn.caption or titles[name].caption,
            )
            for name, drawn in result.charts.items()
        ],
        points=[_point(result, claim, verdict) for claim, verdict in result.verdicts.items()],
        tables=[*_failures(result), *comparisons(result)],
        notes=study.notes,
        facts=_facts(result),
        folded=[("Specification of the first run of each part", _specifications(result))],
        csv=result.table.to_csv(index=False),
        file_name=f"{study.name}-{result.tier}",
        live=live,
    )


def verdict_chips(result: StudyResult) -> list[Chip]:
    """How many claims hold, fail, cannot be told or are untested; a tier that is not finished."""
    counts = Counter(str(verdict.status) for verdict in result.verdicts.values())
    chips = []
    for status, mood in MOODS.items():
        if number := counts[status]:
            one, many = _COUNTED.get(status, (status, status))
            chips.append(Chip(f"{number} {one if number == 1 else many}", mood))
    if result.failures:
        count = len(result.failures)
        chips.append(Chip(f"{count} run{'' if count == 1 else 's'} failed", "bad"))
    if diverged := int(result.table.drop_duplicates("key")["diverged"].sum()):
        mood = "bad" if diverged == result.finished else "open"
        chips.append(Chip(f"{diverged} of {result.finished} runs diverged", mood))
    if result.finished < result.planned:
        chips.append(Chip(f"{result.finished} of {result.planned} runs finished", "open"))
    return chips


def _point(result: StudyResult, claim: Claim, verdict: Verdict) -> Point:
    untested = verdict.status == "not tested"
    return Point(
        statement=claim.statement,
        chip=Chip(verdict.status, MOODS[verdict.status]),
        source=claim.source,
        numbers="" if verdict == NOT_TESTED else with_confidence(verdict),
        command=_testing(result) if untested else "",
    )


def _testing(result: StudyResult) -> str:
    """The command that tests what this tier does not: the tier finished, or the next larger."""
    tiers = list(result.study.tiers)
    if result.finished == result.planned:
        tiers = tiers[tiers.index(result.tier) + 1 :]
        if not tiers:
            return ""
        tier = tiers[0]
    else:
        tier = result.tier
    return f"headwise study run {result.study.known_as} --tier {tier}"


def _failures(result: StudyResult) -> list[PageTable]:
    """Runs that failed, if any: what the page says rests on the others."""
    columns = ("part", "setting", "seed", "tries", "error")
    rows = [[str(getattr(run, name)) for name in columns] for run in result.failures]
    note = "Running the study again tries them; what this page says rests on the other runs."
    return [PageTable("Failed runs", columns, rows, note)] if rows else []


def _specifications(result: StudyResult) -> str:
    first = result.table.drop_duplicates("part")[["part", "specification"]]
    found = {part: json.loads(text) for part, text in first.itertuples(index=False, name=None)}
    return json.dumps(found, indent=1)


def comparisons(result: StudyResult) -> list[PageTable]:
    """Per part, every setting's error with the published number beside it where there is one.

    Parts that only prepare others have none.
    """
    study = result.study
    measured = {part: title for part, title in study.parts.items() if part not in study.preparing}
    parts = [(title, [part]) for part, title in measured.items()]
    if "part" in study.rows:  # the parts are what is compared: one table for all
        parts = [(study.title, list(measured))]
    tables = [_comparison(result, title, names) for title, names in parts]
    return [each for each in tables if each.rows]


def _comparison(result: StudyResult, title: str, parts: list[str]) -> PageTable:
    study, published = result.study, result.published
    ours = result.summary[result.summary["part"].isin(parts)]
    theirs = published[published["part"].isin(parts)].dropna(axis=1, how="all")
    shared = [column for column in study.settings if column in theirs.columns]
    merged = ours.assign(error=np.nan)
    if shared:
        merged = ours.merge(theirs[[*shared, "error"]], on=shared, how="left")
    settings = [
        column
        for column in ("part", *study.settings)
        if column in (*study.rows, study.columns)
        or (column != "part" and merged[column].nunique() > 1)
    ]
    ratio = result.error.compared_by == "ratio"
    mean = result.error.mean
    columns = [_titled(result, column) for column in settings]
    columns += ["smallest", mean, "95 % interval", "seeds", *(["stuck"] if ratio else [])]
    columns += ["diverged"]
    with_published = bool(merged["error"].notna().any())
    columns += ["published", "smallest/published", "mean/published"] if with_published else []
    rows = [_row(result, row, settings, with_published) for row in merged.to_dict("records")]
    said = result.error.unit in str(result.error)  # "Euclidean distance … In distance."
    unit = "" if said else f" In {result.error.unit}."
    stuck = " Stuck: seeds more than 10× above the best." if ratio else ""
    like = " Means are compared as arithmetic ones, as papers print them." if with_published else ""
    note = f"{result.error}{unit} The mean is over seeds, with its 95 % interval.{stuck}{like}"
    return PageTable(title, columns, rows, note)


def _titled(result: StudyResult, column: str) -> str:
    known = result.column(column)
    named = known.symbol in re.findall(r"\w+", known.label)
    return known.label if named else f"{known.label} {known.symbol}".strip()


def _row(
    result: StudyResult, row: dict[str, Any], settings: list[str], with_published: bool
) -> list[str]:
    """The cells of one setting."""
    number = result.error.number
    cells = ["" if row[c] != row[c] else readable_value(row[c]) for c in settings]
    least, mean, low, high = (
        _error(row[f"error_{name}"], number) for name in ("min", "mean", "low", "high")
    )
    alone = "one seed" if row["seeds"] - row["diverged"] <= 1 else ""
    cells += [least, mean, f"{low} to {high}" if "" not in (low, high) else alone]
    cells.append(str(row["seeds"]))
    cells += [str(row["stuck"])] if result.error.compared_by == "ratio" else []
    cells.append(str(row["diverged"]))
    if with_published:
        cells.append(_error(row["error"], number))
        for ours in ("error_min", "error_average"):
            ratio = row[ours] / row["error"] if row["error"] else np.nan  # an accuracy of 1
            cells.append(_factor(ratio) if np.isfinite(ratio) else "")
    return cells


def _factor(ratio: float) -> str:
    """Two digits, and no exponent where a person would write none: 0.47×, 310×."""
    return f"{float(f'{ratio:.2g}'):,.0f}×" if 100 <= ratio < 1e6 else f"{ratio:.2g}×"


def _error(value: float, number: str) -> str:
    return f"{value:{number}}" if np.isfinite(value) else ""


def _facts(result: StudyResult) -> list[tuple[str, str]]:
    study, runs = result.study, result.table.drop_duplicates("key")
    seconds = runs["cpu_seconds"].sum()
    steps = int(runs["steps"].sum()) if "steps" in runs else 0
    pace = f", {steps / seconds:.0f} training steps a second" if steps and seconds else ""
    engines = ", ".join(
        f"{name} ({count})" for name, count in runs["engine"].value_counts().items()
    )
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    diverged = int(runs["diverged"].sum())
    return [
        (
            "Runs",
            f"{len(runs)} of {result.planned} finished, {diverged} diverged, "
            f"{len(result.failures)} failed",
        ),
        ("Price", study.tiers[result.tier].price),
        ("Took", f"{seconds:.0f} CPU-seconds{pace}"),
        ("Processor", ", ".join(sorted(runs["cpu"].unique()))),
        ("Engines", engines),
        ("Seeds", ", ".join(str(seed) for seed in sorted(runs["seed"].unique()))),
        ("Run with headwise", ", ".join(sorted(runs["headwise_version"].unique()))),
        ("This page made with", used),
        ("Rerun", f"headwise study run {study.known_as} --tier {result.tier}"),
    ]
