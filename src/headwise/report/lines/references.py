"""What theory, constructions or papers say beside our lines, in grey."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from headwise.report.lines.style import LineStyle
from headwise.report.theme import GREY

MARKS = (("diamond", "◇"), ("triangle-up", "△"), ("square", "□"), ("triangle-down", "▽"))
"""Shapes of references that are a point and no line, and how a caption shows them."""


def lone_labels(rows: pd.DataFrame, x: str) -> tuple[str, ...]:
    """The references that have no two points in any panel: a pattern of dashes would not be seen.

    There is a shape for each of the first few only.
    """
    if "label" not in rows:
        return ()
    counts = rows.groupby(["label", "panel"], sort=False)[x].nunique().groupby(level="label")
    alone = counts.max()
    labels = [label for label in dict.fromkeys(rows["label"].dropna()) if alone.get(label) == 1]
    return tuple(labels[: len(MARKS)])


def said_of_points(labels: Sequence[str]) -> list[str]:
    """What the shapes are, for a caption."""
    return [f"{sign}: {label}." for label, (_, sign) in zip(labels, MARKS, strict=False)]


def reference_layers(style: LineStyle, rows: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dash pattern for each line, a shape for each point."""
    tooltip = [
        alt.Tooltip("label:N", title="reference"),
        alt.Tooltip(f"{style.figure.x}:O", title=style.x.label),
        alt.Tooltip(f"{style.height}:Q", title="error", format=".3g"),
    ]
    lone = rows["label"].isin(style.points)
    layers = []
    if (~lone).any():
        base = alt.Chart(rows[~lone]).encode(x=x, y=y, tooltip=tooltip)
        lines = base.mark_line(strokeWidth=1.5, color=GREY).encode(strokeDash=_dashes(style))
        layers += [lines, base.mark_point(size=22, color=GREY, filled=True, opacity=1)]
    for label, (shape, _) in zip(style.points, MARKS, strict=False):
        here = rows[rows["label"] == label]
        if len(here):
            mark = alt.Chart(here).mark_point(
                shape=shape, size=130, color=GREY, strokeWidth=2, opacity=1
            )
            layers.append(mark.encode(x=x, y=y, tooltip=tooltip))
    return layers


def _dashes(style: LineStyle) -> alt.StrokeDash:
    legend = alt.Legend(symbolSize=300, symbolType="stroke", orient="bottom", columns=1)
    patterns = alt.Scale(domain=list(style.labels), range=list(style.dashes.values()))
    shown = None if style.for_page else legend
    return alt.StrokeDash("label:N", title="references", scale=patterns, legend=shown)
