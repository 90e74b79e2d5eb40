"""A study's figures, from its result table: one declarative chart for the page and for print."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from headwise.lab.result import StudyResult
from headwise.lab.study import Figure, IntervalFigure
from headwise.lab.summary import STUCK, readable_value
from headwise.report.intervals import (
    draw_intervals,
    group_colours,
    interval_panels,
    interval_titles,
)
from headwise.report.lines.legend import Swatch, known_values, legend, legend_title
from headwise.report.lines.panels import MANY, LineData, named_lines, panel_titles, panels
from headwise.report.lines.references import lone_labels, said_of_points
from headwise.report.lines.style import (
    LineStyle,
    axis_ends,
    comparable,
    finite_ends,
    ordered_values,
)
from headwise.report.theme import finished, panel_title

_TOO_LOW = {"zero": "of exactly 0", "negative": "below 0"}
"""States of a seed whose error a logarithmic axis has no place for, and how a caption says it."""


@dataclass(frozen=True, eq=False)
class DrawnFigure:
    """A figure: what it draws (one row a point), its words, and its charts, drawn when asked for.

    `print_chart` draws the chart for print, `page_charts` the panels for a page, whose titles are
    `titles`.
    """

    data: pd.DataFrame
    print_chart: Callable[[], alt.Chart]
    titles: tuple[str, ...]
    page_charts: Callable[[], Mapping[str, alt.TopLevelMixin]]
    legend: tuple[Swatch, ...] = ()
    legend_title: str = ""
    caption: str = ""

    @cached_property
    def chart(self) -> alt.Chart:
        """The chart for print."""
        return self.print_chart()

    @cached_property
    def panels(self) -> Mapping[str, alt.TopLevelMixin]:
        """The panels for a page, by their titles."""
        return self.page_charts()


def draw_all(result: StudyResult) -> dict[str, DrawnFigure]:
    """Every figure of the study for which the tier has runs, by name."""
    drawn = {figure.name: _draw(result, figure) for figure in result.study.figures}
    return {name: each for name, each in drawn.items() if each is not None}


def not_drawn(result: StudyResult) -> list[str]:
    """Why a figure whose runs are there is not on the page, a sentence each."""
    said = []
    for figure in result.study.figures:
        if isinstance(figure, IntervalFigure) or figure.name in result.charts:
            continue
        runs = figure.drawn(result.table)
        errors = runs["error"].to_numpy(float)
        if len(errors):
            said.append(f"“{figure.title}” is not drawn: {_without_a_place(errors)}.")
    return said


def _without_a_place(errors: np.ndarray) -> str:
    if not np.isfinite(errors).any():
        return "every run diverged"
    if (errors[np.isfinite(errors)] == 0).all():
        return "every error is exactly 0, which a logarithmic axis cannot show"
    return "no error is above 0, and a logarithmic axis shows no other"


def _draw(result: StudyResult, figure: Figure | IntervalFigure) -> DrawnFigure | None:
    if isinstance(figure, IntervalFigure):
        data = figure.data(result.table)
        if data.empty:
            return None
        legend = [Swatch(group, group, colour) for group, colour in group_colours(data).items()]
        return DrawnFigure(
            data,
            partial(draw_intervals, figure, data),
            interval_titles(figure, data),
            partial(_interval_panels, figure, data),
            tuple(legend) if len(legend) > 1 else (),
        )
    if not result.table["part"].isin(list(figure.panels)).any():
        return None
    points = figure_data(result, figure)
    return _line_figure(result, figure, points)


def _line_figure(result: StudyResult, figure: Figure, points: pd.DataFrame) -> DrawnFigure | None:
    height = "error_mean" if result.study.score == "mean" else "error_min"
    positive = result.error.compared_by == "ratio"
    seeds = _seeds(result, figure)
    notes = _notes(result, figure, points)
    points, seeds, notes = comparable(figure, points, seeds, notes)
    shown = _in_order(result, figure, _drawable(points, height, positive))
    ends = finite_ends(shown, seeds, height, positive)
    if ends is None:
        return None
    known = shown[shown[height].notna()]
    ours = known[known["source"] != "reference"]
    labels = tuple(dict.fromkeys(known["label"].dropna())) if "label" in known else ()
    lone = lone_labels(known, figure.x)
    style = LineStyle(
        figure=figure,
        x=result.column(figure.x),
        colour=result.column(figure.colour),
        error=result.error,
        score=result.study.score,
        domain=ends,
        values=tuple(ordered_values({*ours[figure.colour].dropna().tolist()})),
        known=known_values(result, figure, ours),
        labels=tuple(label for label in labels if label not in lone),
        points=lone,
        last=ordered_values({*known[figure.x].dropna().tolist()})[-1],
    )
    seeds = _placed(seeds, *axis_ends(style))
    data = LineData(named_lines(style, shown), named_lines(style, seeds), notes)
    caption = f"{figure.caption} {_read_as(style, data)}"
    return DrawnFigure(
        points,
        partial(_printed_lines, style, data, caption),
        tuple(dict.fromkeys(_title_on_page(figure, title) for title in panel_titles(data))),
        partial(_lines_on_page, style, data),
        legend(style),
        legend_title(style),
        caption,
    )


def _printed_lines(style: LineStyle, data: LineData, caption: str) -> alt.Chart:
    drawn = panels(style, data)
    columns = 1 if len(drawn) == 1 else 2 if len(drawn) <= MANY else 3
    printed = [panel.properties(title=panel_title(title)) for title, panel in drawn.items()]
    whole = alt.concat(*printed, columns=columns)
    chart: alt.Chart = finished(whole, style.figure.title, wrap(caption, 88 if columns > 1 else 66))
    return chart


def _lines_on_page(style: LineStyle, data: LineData) -> dict[str, alt.TopLevelMixin]:
    return {
        _title_on_page(style.figure, title): finished(panel)
        for title, panel in panels(replace(style, for_page=True), data).items()
    }


def _title_on_page(figure: Figure, title: str) -> str:
    """A figure's only panel needs no title beside that of the figure."""
    return "" if len(figure.panels) == 1 and figure.facet is None else title


def _interval_panels(figure: IntervalFigure, data: pd.DataFrame) -> dict[str, alt.TopLevelMixin]:
    drawn = interval_panels(figure, data, for_page=True)
    return {title: finished(panel) for title, panel in drawn.items()}


def _drawable(points: pd.DataFrame, height: str, positive: bool) -> pd.DataFrame:
    """What has a place on the axis; of our own settings without one, the gap that they leave.

    A line that went on from neighbour to neighbour would show an error where there is none.
    """
    here = points[height].notna() & ((points[height] > 0) | (not positive))
    ours = points["source"] == "this run"
    return points.assign(**{height: points[height].where(here)})[here | ours]


def _placed(seeds: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """The seeds, those without a place on the axis at its ends."""
    errors = seeds["error"].mask(seeds["state"] == "diverged", high)
    placed = seeds.assign(error=errors.mask(seeds["state"].isin(list(_TOO_LOW)), low))
    return placed.dropna(subset="error")


def _read_as(style: LineStyle, data: LineData) -> str:
    """How to read the marks that this figure has."""
    said = ["Small points: every seed."]
    if style.score == "mean" and data.points.get("error_low", pd.Series(dtype=float)).notna().any():
        said.append(f"Bars: 95 % intervals of the {style.error.mean}.")
    states = set(data.seeds["state"])
    if "stuck" in states:
        said.append(f"×: a seed that is stuck, {STUCK:.0f}× or more above the best.")
    if "diverged" in states:
        said.append("Bold × at the top: a seed that diverged.")
    low = [words for state, words in _TOO_LOW.items() if state in states]
    if low:
        said.append(f"Triangle at the bottom: an error {' or '.join(low)}, below any such axis.")
    if (data.points["source"] == "published").any():
        said.append("Dotted: published.")
    said += said_of_points(style.points)
    return " ".join(said)


def figure_data(result: StudyResult, figure: Figure) -> pd.DataFrame:
    """Everything that the figure draws: one row a point, ours, published and references."""
    summary = result.summary
    ours = figure.drawn(summary).assign(source="this run")
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


def _with_references(ours: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    if references.empty:
        return ours
    references = references.assign(error_mean=references["error_min"])
    return pd.concat([ours, references.assign(source="reference")], ignore_index=True)


def _with_panels(result: StudyResult, figure: Figure, data: pd.DataFrame) -> pd.DataFrame:
    panel = data["part"].map(dict(figure.panels)) if "part" in data else pd.Series(dtype=str)
    if figure.facet is not None:
        title = result.column(figure.facet).title
        panel = data[figure.facet].map(
            lambda value: figure.facet_titles.get(value, f"{title} = {readable_value(value)}")
        )
    return data.assign(panel=panel)


def _in_order(result: StudyResult, figure: Figure, rows: pd.DataFrame) -> pd.DataFrame:
    """Panels as the study has its parts or names their values, else by value."""
    if figure.facet is None:
        places = {part: place for place, part in enumerate(figure.panels)}
        key = rows["part"].map(places) if "part" in rows else None
    else:
        found = ordered_values({*rows[figure.facet].dropna().tolist()})
        values = dict.fromkeys([*figure.facet_titles, *found])
        key = rows[figure.facet].map({value: place for place, value in enumerate(values)})
    return rows if key is None else rows.loc[key.sort_values(kind="stable").index]


def _seeds(result: StudyResult, figure: Figure) -> pd.DataFrame:
    """One row a run of the figure's parts: its error, and whether it is stuck or diverged."""
    runs = figure.drawn(result.table)
    settings = ["part", *result.study.settings]
    ratio = result.error.compared_by == "ratio"
    above_zero = runs["error"].where(runs["error"] > 0)
    best = above_zero.groupby([runs[name] for name in settings], dropna=False).transform("min")
    lost = runs["diverged"].astype(bool) | ~np.isfinite(runs["error"].astype(float))
    state = pd.Series("trained", runs.index)
    if ratio:
        state = state.mask(runs["error"] > STUCK * best, "stuck")
        state = state.mask(runs["error"] == 0, "zero").mask(runs["error"] < 0, "negative")
    state = state.mask(lost, "diverged")
    columns = list(dict.fromkeys([*settings, *figure.columns, "seed", "error"]))
    return _with_panels(result, figure, runs[columns].assign(state=state))


def _notes(result: StudyResult, figure: Figure, points: pd.DataFrame) -> pd.DataFrame:
    """What the study wants to be written into the figure."""
    ours = points[points["source"] == "this run"]
    if figure.notes is None:
        return pd.DataFrame({"panel": []})
    notes = figure.notes(ours)
    if notes.empty:
        return pd.DataFrame({"panel": []})
    return _with_panels(result, figure, notes).assign(
        error_mean=lambda rows: rows["error_min"] if "error_min" in rows else float("nan")
    )


def panel_spec(chart: Any) -> dict[str, Any]:
    """A chart as data for a page: as wide as its place there, on the page's own ground."""
    data: dict[str, Any] = chart.to_dict()
    data.setdefault("config", {})["background"] = "transparent"
    composed = {"hconcat", "vconcat", "concat", "facet", "spec"} & data.keys()
    if not composed and isinstance(data.get("width"), int | float):
        data["width"] = "container"
        data["autosize"] = {"type": "fit-x", "contains": "padding"}
    return data
