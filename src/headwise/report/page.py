"""One self-contained HTML page: figures, claims, numbers beside the published ones, data."""

import json
from typing import Any

import numpy as np

from headwise.lab.result import StudyResult
from headwise.lab.study import Claim, Verdict
from headwise.lab.summary import readable_value
from headwise.lab.work import versions
from headwise.report.template import inline_text, render_page

_FAILURES_SHOWN = 50
_MARKS = {
    "holds": ("✓", "holds"),
    "does not hold": ("✗", "fails"),
    "undecided": ("?", "untested"),
    "not tested": ("–", "untested"),
}


def render(result: StudyResult) -> str:
    """The page as text. It loads nothing: charts, their library and the data are all inside."""
    study, conclusion = result.study, result.conclusion
    first = result.table.drop_duplicates("part")[["part", "specification"]]
    specifications = {
        part: json.loads(text) for part, text in first.itertuples(index=False, name=None)
    }
    charts = {name: drawn.chart for name, drawn in result.charts.items()}
    return render_page(
        "study.html.j2",
        charts,
        title=study.title,
        paper=study.paper,
        subtitle=f"Study {study.name}, tier {result.tier}",
        question=study.question,
        finding=conclusion.sentence,
        conclusive=conclusion.conclusive,
        settled_by=conclusion.settled_by,
        failures=result.failures[:_FAILURES_SHOWN],
        failures_said=_failures_said(result),
        figures=[figure for figure in study.figures if figure.name in charts],
        claims=[_claim_row(claim, verdict) for claim, verdict in result.verdicts.items()],
        comparisons=comparisons(result),
        error_is=str(result.error),
        mean_is="geometric" if result.error.compared_by == "ratio" else "arithmetic",
        notes=study.notes,
        facts=_facts(result),
        specifications=json.dumps(specifications, indent=1),
        row_count=len(result.table),
        csv=inline_text(result.table.to_csv(index=False)),
        file_name=f"{study.name}-{result.tier}",
    )


def _failures_said(result: StudyResult) -> str:
    count, shown = len(result.failures), min(_FAILURES_SHOWN, len(result.failures))
    which = "" if shown == count else f" The first {shown}:"
    return f"{count} of {result.planned} runs failed; running the study again tries them.{which}"


def comparisons(result: StudyResult) -> list[dict[str, Any]]:
    """Per part, every setting's error with the published number beside it where there is one."""
    study = result.study
    parts = [(title, [part]) for part, title in study.parts.items()]
    if "part" in study.rows:  # the parts are what is compared: one table for all
        parts = [(study.title, list(study.parts))]
    tables = [_comparison(result, title, names) for title, names in parts]
    return [each for each in tables if each["rows"]]


def _comparison(result: StudyResult, title: str, parts: list[str]) -> dict[str, Any]:
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
    columns = [*settings, "smallest", "mean", "95 % interval", "seeds", "stuck", "diverged"]
    with_published = bool(merged["error"].notna().any())
    columns += ["published", "ours/published"] if with_published else []
    number = result.error.number
    rows = [_row(row, settings, number, with_published) for row in merged.to_dict("records")]
    return {"title": title, "columns": columns, "rows": rows}


def _row(row: dict[str, Any], settings: list[str], number: str, with_published: bool) -> list[Any]:
    """The cells of one setting."""
    cells: list[Any] = [readable_value(row[column]) for column in settings]
    least, mean, low, high = (
        _error(row[f"error_{name}"], number) for name in ("min", "mean", "low", "high")
    )
    cells += [least, mean, f"{low} – {high}", row["seeds"], row["stuck"], row["diverged"]]
    if with_published:
        ratio = row["error_min"] / row["error"]
        said = f"{ratio:.2g}×" if np.isfinite(ratio) else "–"
        cells += [_error(row["error"], number), said]
    return cells


def _claim_row(claim: Claim, verdict: Verdict) -> dict[str, str]:
    mark, style = _MARKS[verdict.status]
    return {
        "statement": claim.statement,
        "source": claim.source,
        "status": verdict.status,
        "numbers": verdict.numbers,
        "mark": mark,
        "style": style,
    }


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


def _error(value: float, number: str) -> str:
    return "–" if not np.isfinite(value) else f"{value:{number}}"
