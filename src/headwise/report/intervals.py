"""Means with intervals, one line a label: which is better, and is it told apart?"""

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from headwise.lab.study import IntervalFigure
from headwise.report.lines.style import in_lines
from headwise.report.lines.switches import shown_of, with_switches
from headwise.report.theme import GREY, PALETTE, finished, panel_title

_WIDTH, _ROW = 330, 34
_LONGEST_TITLE = 30  # letters, where three panels stand side by side
_LONGEST_LABEL = 18  # letters; longer ones take two lines, or there is no room for the figure


def draw_intervals(figure: IntervalFigure, data: pd.DataFrame) -> alt.Chart:
    """The figure of these rows, of which there is one at least."""
    parts = interval_panels(figure, data).items()
    panels = [panel.properties(title=panel_title(name)) for name, panel in parts]
    whole = alt.concat(*panels, columns=2)  # three beside one another are too small on paper
    chart: alt.Chart = finished(whole, figure.title, figure.caption)
    return chart


def group_colours(data: pd.DataFrame) -> dict[str, str]:
    """The colour of each group, by its name."""
    groups = sorted(data["group"].unique(), reverse=True)
    return {group: PALETTE[k % len(PALETTE)] for k, group in enumerate(groups)}


def interval_titles(figure: IntervalFigure, data: pd.DataFrame) -> tuple[str, ...]:
    """What the panels are called, in their order."""
    return tuple(str(title) for title, _ in _by_panel(figure, data))


def interval_panels(
    figure: IntervalFigure, data: pd.DataFrame, for_page: bool = False
) -> dict[str, alt.LayerChart]:
    """A chart a panel, by its title; those for a page have no legend, which the page has."""
    rows = data if figure.ordered else data.sort_values("mean")
    labels = list(dict.fromkeys(rows["label"]))
    return {
        str(title): _panel(figure, here, labels, data, for_page)
        for title, here in _by_panel(figure, data)
    }


def _by_panel(figure: IntervalFigure, data: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame]]:
    return iter(data.groupby("panel", sort=not figure.ordered))


def _panel(
    figure: IntervalFigure,
    here: pd.DataFrame,
    labels: list[str],
    data: pd.DataFrame,
    for_page: bool,
) -> alt.LayerChart:
    colours = group_colours(data)
    groups = list(colours)
    shown = None if for_page or len(groups) == 1 else alt.Legend(orient="bottom")
    legend: dict[str, Any] = {"legend": shown}
    rows = shown_of(alt.Chart(here), "group", for_page)
    shared = data.groupby(["panel", "label"])["group"].nunique().max() > 1
    apart = {"yOffset": alt.YOffset("group:N", sort=groups)} if shared else {}
    base = rows.encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=_labels(labels)),
        **apart,
        color=alt.Color(
            "group:N",
            title=None,
            scale=alt.Scale(domain=groups, range=list(colours.values())),
            sort=groups,
            **legend,
        ),
        tooltip=[
            alt.Tooltip("label:N", title="setting"),
            alt.Tooltip("group:N", title="arm"),
            alt.Tooltip("mean:Q", format=".4f"),
            alt.Tooltip("low:Q", title="95 % from", format=".4f"),
            alt.Tooltip("high:Q", title="95 % to", format=".4f"),
            alt.Tooltip("seeds:Q"),
        ],
    )
    title, axis = in_lines(figure.axis, _LONGEST_TITLE), alt.Axis(tickCount=4)
    x = alt.X("mean:Q", title=title, axis=axis, scale=_scale(figure, data))
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    shapes = alt.Shape("group:N", title=None, sort=groups, scale=alt.Scale(domain=groups), **legend)
    marks = base.mark_point(size=55, filled=True, opacity=1).encode(x=x, shape=shapes)
    layers: list[alt.Chart] = [bars.transform_filter("isValid(datum.low)"), marks]
    if figure.zero:
        rule = alt.Chart(pd.DataFrame({"mean": [0.0]}))
        layers.insert(0, rule.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="mean:Q"))
    sized = alt.layer(*layers).properties(width=_WIDTH, height=_ROW * len(labels))
    chart: alt.LayerChart = with_switches(sized, for_page)
    return chart


def _labels(labels: list[str]) -> alt.Axis:
    """The axis of the labels, long ones in lines."""
    lines = {each: wrap(each, _LONGEST_LABEL) for each in labels if len(each) > _LONGEST_LABEL}
    axis = alt.Axis(grid=True, tickBand="extent", labelLimit=260)
    if lines:
        axis.labelExpr = f"({json.dumps(lines)})[datum.label] || datum.label"
    return axis


def _scale(figure: IntervalFigure, data: pd.DataFrame) -> alt.Scale:
    """Differences are compared from panel to panel: one axis for all."""
    if not figure.zero:
        return alt.Scale(zero=False, nice=True)
    known = data[["mean", "low", "high"]].to_numpy(float)
    known = np.append(known[np.isfinite(known)], 0.0)
    return alt.Scale(domain=[float(known.min()), float(known.max())], nice=True)
