"""Means with intervals, one line a label: which is better, and is it told apart?"""

import altair as alt
import pandas as pd

from headwise.lab.study import IntervalFigure
from headwise.report.theme import GREY, PALETTE, finished, panel_title

_WIDTH, _ROW = 330, 34
_LABELS = alt.Axis(grid=True, tickBand="extent", labelLimit=260)


def draw_intervals(figure: IntervalFigure, data: pd.DataFrame) -> alt.Chart:
    """The figure of these rows, of which there is one at least."""
    parts = interval_panels(figure, data).items()
    panels = [panel.properties(title=panel_title(name)) for name, panel in parts]
    chart: alt.Chart = finished(alt.hconcat(*panels), figure.title, figure.caption)
    return chart


def interval_panels(figure: IntervalFigure, data: pd.DataFrame) -> dict[str, alt.LayerChart]:
    """A chart a panel, by its title."""
    rows = data if figure.ordered else data.sort_values("mean")
    labels = list(dict.fromkeys(rows["label"]))
    groups = sorted(data["group"].unique(), reverse=True)
    return {
        str(title): _panel(figure, here, labels, groups)
        for title, here in data.groupby("panel", sort=not figure.ordered)
    }


def _panel(
    figure: IntervalFigure, data: pd.DataFrame, labels: list[str], groups: list[str]
) -> alt.LayerChart:
    colour = alt.Scale(domain=groups, range=list(PALETTE[: len(groups)]))
    base = alt.Chart(data).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=_LABELS),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=alt.Color("group:N", title=None, scale=colour, sort=groups),
        tooltip=[
            alt.Tooltip("label:N", title="setting"),
            alt.Tooltip("group:N", title="arm"),
            alt.Tooltip("mean:Q", format=".4f"),
            alt.Tooltip("low:Q", title="95 % from", format=".4f"),
            alt.Tooltip("high:Q", title="95 % to", format=".4f"),
            alt.Tooltip("seeds:Q"),
        ],
    )
    x = alt.X("mean:Q", title=figure.axis, scale=alt.Scale(zero=figure.zero, nice=True))
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=figure.axis), x2="high:Q")
    marks = base.mark_point(size=55, filled=True, opacity=1).encode(
        x=x, shape=alt.Shape("group:N", title=None, sort=groups, scale=alt.Scale(domain=groups))
    )
    layers: list[alt.Chart] = [bars.transform_filter("isValid(datum.low)"), marks]
    if figure.zero:
        rule = alt.Chart(pd.DataFrame({"mean": [0.0]}))
        layers.insert(0, rule.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="mean:Q"))
    return alt.layer(*layers).properties(width=_WIDTH, height=_ROW * len(labels))
