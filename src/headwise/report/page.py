"""One self-contained HTML page: figures, claims, numbers beside the published ones, data."""

import json
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from headwise.lab.study import Study
from headwise.lab.summary import readable_value, summarise
from headwise.lab.work import versions
from headwise.report.template import inline_text, render_page

_MARKS = {
    "holds": ("✓", "holds"),
    "does not hold": ("✗", "fails"),
    "undecided": ("?", "untested"),
    "not tested": ("–", "untested"),
}


def render(
    study: Study,
    tier: str,
    results: pd.DataFrame,
    planned: int,
    charts: dict[str, alt.Chart],
) -> str:
    """The page as text. It loads nothing: charts, their library and the data are all inside."""
    finding = study.finding(results)
    first = results.drop_duplicates("part")[["part", "specification"]]
    specifications = {
        part: json.loads(text) for part, text in first.itertuples(index=False, name=None)
    }
    return render_page(
        "study.html.j2",
        charts,
        title=study.title,
        paper=study.paper,
        subtitle=f"Study {study.name}, tier {tier}",
        question=study.question,
        finding=finding.sentence,
        conclusive=finding.conclusive,
        settled_by=finding.settled_by,
        figures=[figure for figure in study.figures if figure.name in charts],
        claims=[_claim_row(study, index, results) for index in range(len(study.claims))],
        comparisons=comparisons(study, results),
        error_is=f"{study.error} = {study.error_is}.",
        notes=study.notes,
        facts=_facts(study, tier, results, planned),
        specifications=json.dumps(specifications, indent=1),
        row_count=len(results),
        csv=inline_text(results.to_csv(index=False)),
        file_name=f"{study.name}-{tier}",
    )


def comparisons(study: Study, results: pd.DataFrame) -> list[dict[str, Any]]:
    """Per part, every setting's error with the published number beside it where there is one."""
    summary, published = summarise(results, study.setting), study.published()
    tables = []
    parts = [(title, [part]) for part, title in study.parts.items()]
    if "part" in study.rows:  # the parts are what is compared: one table for all
        parts = [(study.title, list(study.parts))]
    for title, names in parts:
        ours = summary[summary["part"].isin(names)]
        if ours.empty:
            continue
        theirs = published[published["part"].isin(names)].dropna(axis=1, how="all")
        shared = [column for column in study.setting if column in theirs.columns]
        merged = ours.assign(error=np.nan)
        if shared:
            merged = ours.merge(theirs[[*shared, "error"]], on=shared, how="left")
        settings = [
            column
            for column in ("part", *study.setting)
            if column in (*study.rows, study.columns)
            or (column != "part" and merged[column].nunique() > 1)
        ]
        columns = [*settings, "smallest", "mean", "95 % interval", "seeds", "stuck", "diverged"]
        with_published = merged["error"].notna().any()
        columns += ["published", "ours/published"] if with_published else []
        rows = []
        for row in merged.to_dict("records"):
            cells = [readable_value(row[column]) for column in settings]
            least, mean, low, high = (
                _error(row[f"error_{name}"], study.number)
                for name in ("min", "mean", "low", "high")
            )
            cells += [least, mean, f"{low} – {high}"]
            cells += [row["seeds"], row["stuck"], row["diverged"]]
            if with_published:
                ratio = row["error_min"] / row["error"]
                cells += [
                    _error(row["error"], study.number),
                    f"{ratio:.2g}×" if np.isfinite(ratio) else "–",
                ]
            rows.append(cells)
        tables.append({"title": title, "columns": columns, "rows": rows})
    return tables


def _claim_row(study: Study, index: int, results: pd.DataFrame) -> dict[str, str]:
    claim = study.claims[index]
    verdict = claim.check(results)
    mark, style = _MARKS[verdict.status]
    return {
        "statement": claim.statement,
        "source": claim.source,
        "status": verdict.status,
        "numbers": verdict.numbers,
        "mark": mark,
        "style": style,
    }


def _facts(study: Study, tier: str, results: pd.DataFrame, planned: int) -> list[tuple[str, str]]:
    runs = results.drop_duplicates("key")
    seconds = runs["wall_seconds"].sum()
    steps = int(runs["steps"].sum())
    pace = f", {steps / seconds:.0f} training steps a second" if steps else ""
    engines = ", ".join(
        f"{name} ({count})" for name, count in runs["engine"].value_counts().items()
    )
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    return [
        ("Runs", f"{len(runs)} of {planned} finished, {int(runs['diverged'].sum())} diverged"),
        ("Price", study.tiers[tier].price),
        ("Took", f"{seconds:.0f} CPU-seconds{pace}"),
        ("Engines", engines),
        ("Seeds", ", ".join(str(seed) for seed in sorted(runs["seed"].unique()))),
        ("Run with headwise", ", ".join(sorted(runs["headwise_version"].unique()))),
        ("This page made with", used),
        ("Rerun", f"headwise study run {study.name} --tier {tier}"),
    ]


def _error(value: float, number: str) -> str:
    return "–" if not np.isfinite(value) else f"{value:{number}}"
