"""From a store to a folder: report.html, figures as PNG and SVG, and their data."""

from pathlib import Path

import altair as alt
import pandas as pd

from headwise.core.errors import require
from headwise.lab.store import Store
from headwise.lab.study import Figure, IntervalFigure, Study
from headwise.lab.table import table
from headwise.report.figures import draw, figure_data
from headwise.report.files import figure_files, write_files
from headwise.report.intervals import draw_intervals
from headwise.report.page import render
from headwise.studies import find_study


def build_report(store: Store, study_name: str, tier: str, folder: Path) -> Path:
    """Write the report of a study's tier from the store alone; returns the page's path."""
    study = find_study(study_name)
    study.tier(tier)
    results = table(store.records(study_name, tier))
    require(
        len(results) > 0,
        f"{store.path} holds no finished run of {study_name}, tier {tier}; "
        f"run: headwise study run {study_name} --tier {tier} --store {store.path}",
    )
    planned = {(name, level): total for name, level, _, total in store.progress()}
    charts = {}
    files: dict[str, bytes] = {}
    for figure in study.figures:
        drawn = _drawn(study, figure, results)
        if drawn is None:
            continue
        charts[figure.name], data = drawn
        files |= figure_files(figure.name, charts[figure.name], data)
    files[f"{study_name}.csv"] = results.to_csv(index=False).encode()
    page = render(study, tier, results, planned[study_name, tier], charts)
    files["report.html"] = page.encode()
    write_files(folder, files)
    return folder / "report.html"


def _drawn(
    study: Study, figure: Figure | IntervalFigure, results: pd.DataFrame
) -> tuple[alt.Chart, pd.DataFrame] | None:
    """A figure and what it draws, or None where the tier has no runs for it."""
    if isinstance(figure, IntervalFigure):
        data = figure.data(results)
        chart = draw_intervals(figure, data)
        return None if chart is None else (chart, data)
    published = study.published()
    chart = draw(study, figure, results, published)
    return None if chart is None else (chart, figure_data(study, figure, results, published))
