"""A study's figures, from its result table: one declarative chart for the page and for print."""

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import altair as alt
import pandas as pd

from headwise.lab.kinds import Column
from headwise.lab.result import StudyResult
from headwise.lab.study import Figure, IntervalFigure
from headwise.lab.summary import readable_value
from headwise.report.intervals import draw_intervals
from headwise.report.theme import GREY, SCHEME, finished

_WIDTH, _HEIGHT = 300, 240


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of a study: the chart, and what it draws, one row a point."""

    chart: alt.Chart
    data: pd.DataFrame


def draw_all(result: StudyResult) -> dict[str, DrawnFigure]:
    """Every figure of the study for which the tier has runs, by name."""
    drawn = {figure.name: _draw(result, figure) for figure in result.study.figures}
    return {name: each for name, each in drawn.items() if each is not None}


def _draw(result: StudyResult, figure: Figure | IntervalFigure) -> DrawnFigure | None:
    if isinstance(figure, IntervalFigure):
        data = figure.data(result.table)
        return None if data.empty else DrawnFigure(draw_intervals(figure, data), data)
    if not result.table["part"].isin(list(figure.panels)).any():
        return None
    data = figure_data(result, figure)
    return DrawnFigure(_chart(result, figure, data), data)


def figure_data(result: StudyResult, figure: Figure) -> pd.DataFrame:
    """Everything that the figure draws: one row a point, ours, published and references."""
    summary = result.summary
    ours = summary[summary["part"].isin(list(figure.panels))].assign(source="this run")
    if figure.references is not None:
        return _with_panels(result, figure, _with_references(ours, figure.references(ours)))
    published = result.published
    theirs = published[published["part"].isin(set(ours["part"]))].rename(
        columns={"error": "error_min"}
    )
    theirs = theirs.assign(error_mean=theirs["error_min"])
    if len(theirs) and {figure.x, figure.colour} <= set(theirs.columns):
        ours = pd.concat([ours, theirs.assign(source="published")], ignore_index=True)
    return _with_panels(result, figure, ours)


def _height(result: StudyResult) -> str:
    """The column that stands for a setting: the smallest error over seeds, or the mean."""
    return "error_mean" if result.study.score == "mean" else "error_min"


def _with_references(ours: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    if references.empty:
        return ours
    references = references.assign(error_mean=references["error_min"])
    return pd.concat([ours, references.assign(source="reference")], ignore_index=True)


def _with_panels(result: StudyResult, figure: Figure, data: pd.DataFrame) -> pd.DataFrame:
    panel = data["part"].map(dict(figure.panels))
    if figure.facet is not None:
        title = result.column(figure.facet).title
        panel = title + " = " + data[figure.facet].map(readable_value)
    return data.assign(panel=panel)


def _chart(result: StudyResult, figure: Figure, data: pd.DataFrame) -> alt.Chart:
    height = _height(result)
    data = data[data[height].notna()]
    if result.error.compared_by == "ratio":
        data = data[data[height] > 0]  # a logarithmic axis has no zero
    domain = (data[height].min(), data[height].max())
    rows = []
    for panel, here in data.groupby("panel", sort=False):
        references = here[here["source"] == "reference"]
        by_source = [here[here["source"] == source] for source in ("this run", "published")]
        rows.append(
            [
                _panel(result, figure, points, references, panel, domain)
                for points in by_source
                if len(points)
            ]
        )
    if all(len(row) == 1 for row in rows):  # nothing published: two panels side by side
        chart = alt.concat(*[row[0] for row in rows], columns=2)
    else:
        chart = alt.vconcat(*[alt.hconcat(*row) for row in rows])
    whole: alt.Chart = finished(chart, figure.title, figure.caption)
    return whole


def _panel(
    result: StudyResult,
    figure: Figure,
    points: pd.DataFrame,
    references: pd.DataFrame,
    title: str,
    domain: tuple[float, float],
) -> alt.LayerChart:
    x_of, colour_of, error = result.column(figure.x), result.column(figure.colour), result.error
    places = {*points[figure.x].tolist()}
    if len(references):
        places |= {*references[figure.x].tolist()}
    x = _x(figure, x_of, _ordered(places))
    y = _y(result, domain)
    number, geometric = error.number, error.compared_by == "ratio"
    colours = alt.Scale(scheme=SCHEME)
    base = alt.Chart(points).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip(f"{figure.x}:O", title=x_of.label),
            alt.Tooltip(f"{figure.colour}:O", title=colour_of.label),
            alt.Tooltip("error_min:Q", title=f"smallest {error.name}", format=number),
            alt.Tooltip(
                "error_mean:Q",
                title=f"mean ({'geometric' if geometric else 'arithmetic'})",
                format=number,
            ),
            alt.Tooltip("error_low:Q", title="95 % from", format=number),
            alt.Tooltip("error_high:Q", title="95 % to", format=number),
            alt.Tooltip("seeds:Q", title="seeds"),
            alt.Tooltip("stuck:Q", title="stuck seeds"),
        ],
    )
    # The lines are coloured by `stroke` so that the points' legend joins colour and shape.
    lines = base.mark_line(strokeWidth=2).encode(
        stroke=alt.Stroke(f"{figure.colour}:O", scale=colours, legend=None)
    )
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(
        color=alt.Color(f"{figure.colour}:O", title=colour_of.label, scale=colours),
        shape=alt.Shape(f"{figure.colour}:O", title=colour_of.label),
    )
    layers = [lines, marks]
    if len(references):
        layers.insert(0, _references(figure, x_of, references, x, y))
    source = points["source"].iloc[0]
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=f"{title} ({source})")


def _references(
    figure: Figure, x_of: Column, references: pd.DataFrame, x: alt.X, y: alt.Y
) -> alt.LayerChart:
    """What theory, constructions or the paper say, in grey: a dash pattern for each."""
    base = alt.Chart(references).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("label:N", title="reference"),
            alt.Tooltip(f"{figure.x}:O", title=x_of.label),
            alt.Tooltip("error_min:Q", title="error", format=".3g"),
        ],
    )
    dash = alt.StrokeDash(
        "label:N",
        title="reference",
        sort=None,
        legend=alt.Legend(labelLimit=320, symbolType="stroke", symbolSize=500),
    )
    lines = base.mark_line(strokeWidth=1.2, color=GREY).encode(strokeDash=dash)
    marks = base.mark_point(size=18, color=GREY, filled=True, opacity=1)
    # A dash pattern does not show on a single point: such a reference is named in place.
    single = references.groupby("label").filter(lambda rows: len(rows) == 1)
    on_the_right = single[figure.x] > references[figure.x].median()
    names = [
        alt.Chart(here)
        .mark_text(align=align, dx=shift, dy=9, fontSize=9, color=GREY)
        .encode(x=x, y=y, text="label:N")
        for here, align, shift in (
            (single[on_the_right], "right", -4),
            (single[~on_the_right], "left", 4),
        )
        if len(here)
    ]
    return alt.layer(lines, marks, *names)


def _ordered(values: set[Any]) -> list[Any]:
    """In order; numbers and words together as words."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _x(figure: Figure, column: Column, values: list[Any]) -> alt.X:
    axis = alt.Axis(labelAngle=0, values=values, grid=False)
    if figure.x == "rank_share":
        axis.labelExpr = "datum.value < 1 ? '1/' + round(1 / datum.value) : '1'"
    if figure.x_log:
        scale = alt.Scale(type="log", base=2, nice=False, padding=12)
        return alt.X(f"{figure.x}:Q", title=column.label, axis=axis, scale=scale)
    return alt.X(f"{figure.x}:O", title=column.label, axis=axis)


def _y(result: StudyResult, domain: tuple[float, float]) -> alt.Y:
    error, column = result.error, f"{_height(result)}:Q"
    title = f"{error.name}, {result.study.score} over seeds"
    if error.compared_by == "difference":
        margin = 0.05 * ((domain[1] - domain[0]) or abs(domain[0]) or 1.0)
        wide = [domain[0] - margin, domain[1] + margin]
        title = f"{error.name}, {error.unit}, {result.study.score} over seeds"
        return alt.Y(column, title=title, scale=alt.Scale(domain=wide, nice=False))
    low, high = domain[0] / 2, domain[1] * 2
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    few = high < 300 * low  # few decades: name numbers between them
    values = [m * 10.0**power for power in decades for m in ((1, 2, 5) if few else (1,))]
    inside = [value for value in values if low <= value <= high]
    axis = alt.Axis(format="~g" if few else ".0e", values=inside)
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    return alt.Y(column, title=title, axis=axis, scale=scale)
