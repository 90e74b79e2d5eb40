"""Error against something, a line a setting: the panels of a study's line figures.

A line joins what stands for a setting (the smallest error over seeds, or the mean). Every seed is
a small point of its own, so that the spread is seen; seeds that are stuck or diverged are crosses.
Published numbers of the same setting are faint, in the same colours; references are grey.
"""

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from headwise.lab.summary import readable_value
from headwise.report.lines.names import line_name, name_layers, named_in_place, names_at_ends
from headwise.report.lines.references import reference_layers
from headwise.report.lines.style import LineStyle, ordered_values, x_axis, y_axis
from headwise.report.lines.switches import shown_of, with_switches
from headwise.report.theme import FAINTEST, GREY

MANY = 6
"""More panels than these are small, and more of them stand beside one another."""

_SIZES = {1: (460, 330), MANY: (330, 280)}  # of a panel that stands alone, and of a few
_SMALL = (230, 190)  # of one of many
_MORE_HEIGHT = 50  # of a panel that stands alone on a page, where it is wider, too
_LETTER = 8.0  # pixels, about
_LINE = "line_of"  # the column with a line's value as text


@dataclass(frozen=True)
class LineData:
    """What a line figure draws: points, seeds and notes have a column `panel`.

    `points` holds one row a setting and `source` ("this run", "published", "reference");
    `seeds` one row a run; `notes` what is written into the figure.
    """

    points: pd.DataFrame
    seeds: pd.DataFrame
    notes: pd.DataFrame


def named_lines(style: LineStyle, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what a legend calls their line: JavaScript writes 4.0 and True otherwise."""
    return rows.assign(**{_LINE: rows[style.figure.colour].map(readable_value)})


def panel_titles(data: LineData) -> list[str]:
    """What the panels are called, in their order."""
    return list(dict.fromkeys(data.points["panel"]))


def panels(style: LineStyle, data: LineData) -> dict[str, alt.LayerChart]:
    """A chart a panel, by its title."""
    titles = panel_titles(data)
    width, height = next((size for most, size in _SIZES.items() if len(titles) <= most), _SMALL)
    height += _MORE_HEIGHT if style.for_page and len(titles) == 1 else 0
    return {
        title: _panel(
            style, LineData(*(_in_panel(each, title) for each in _frames(data)))
        ).properties(width=width, height=height)
        for title in titles
    }


def _frames(data: LineData) -> tuple[pd.DataFrame, ...]:
    return data.points, data.seeds, data.notes


def _in_panel(rows: pd.DataFrame, title: str) -> pd.DataFrame:
    return rows[rows["panel"] == title] if len(rows) else rows


def _panel(style: LineStyle, data: LineData) -> alt.LayerChart:
    points = data.points
    ours = points[points["source"] == "this run"]
    published = points[points["source"] == "published"]
    references = points[points["source"] == "reference"]
    places = {*pd.concat([points[style.figure.x], data.seeds[style.figure.x]]).dropna().tolist()}
    x, y = x_axis(style, ordered_values(places)), y_axis(style, style.height)
    # Vega-Lite keeps the legend only if the first layer has it: our points, unseen.
    unseen = alt.Chart(ours).mark_point(filled=True, opacity=0)
    layers: list[alt.Chart] = [unseen.encode(x=x, y=y, **_marked(style, ours))]
    if len(references):
        layers += reference_layers(style, references, x, y)
    if len(data.notes):
        layers += _notes(style, data.notes, x, y)
    if len(published):
        layers += _lines(style, published, x, y, faint=True)
    layers += _seeds(style, data.seeds, x)
    layers += _lines(style, ours, x, y, faint=False)
    named = named_in_place(style, ours)
    if named:
        ends = _visible(style, alt.Chart(names_at_ends(style, ours)))
        layers += name_layers(style, ends, x, y)
    chart: alt.LayerChart = with_switches(alt.layer(*layers), style.for_page)
    if style.for_page and named:
        longest = max(len(line_name(style, value)) for value in style.values)
        room = {"left": 5, "top": 5, "right": _LETTER * longest + 10, "bottom": 8}
        chart = chart.properties(padding=room)
    return chart


def _visible(style: LineStyle, chart: alt.Chart) -> alt.Chart:
    """Without the lines that a reader of the page has switched off."""
    shown: alt.Chart = shown_of(chart, _LINE, style.for_page)
    return shown


def _scale(style: LineStyle) -> alt.Scale:
    return alt.Scale(domain=list(style.values), range=list(style.colours.values()))


def _lines(
    style: LineStyle, rows: pd.DataFrame, x: alt.X, y: alt.Y, faint: bool
) -> list[alt.Chart]:
    """A line a setting, with its points; intervals of means.

    Only the points of our own lines use the channels `color` and `shape`: their legend joins both.
    """
    name = f"{style.figure.colour}:N"
    stroke = alt.Stroke(name, scale=_scale(style), legend=None)
    base = _visible(style, alt.Chart(rows)).encode(x=x, y=y, tooltip=_tooltip(style, faint))
    if faint:
        lines = base.mark_line(strokeWidth=1.5, strokeDash=[2, 2], opacity=FAINTEST).encode(
            stroke=stroke
        )
        return [lines, base.mark_point(size=40, opacity=FAINTEST).encode(stroke=stroke)]
    marks = base.mark_point(size=75, filled=True, opacity=1).encode(**_marked(style, ours=rows))
    layers = [base.mark_line(strokeWidth=2.5).encode(stroke=stroke), marks]
    if style.score == "mean":
        bars = base.transform_filter("isValid(datum.error_low)").mark_rule(
            strokeWidth=1.5, clip=True
        )
        ends = bars.encode(y=y_axis(style, "error_low"), y2="error_high:Q", stroke=stroke)
        layers.insert(0, ends)
    return layers


def _marked(style: LineStyle, ours: pd.DataFrame) -> dict[str, Any]:
    """The channels of our points, with the legend where there is one."""
    said = style.for_page or style.figure.facet == style.figure.colour
    legend = None if said or named_in_place(style, ours) else alt.Legend(symbolOpacity=1)
    name, title = f"{style.figure.colour}:N", style.colour.label
    shapes = alt.Scale(domain=list(style.values), range=list(style.shapes.values()))
    return {
        "color": alt.Color(name, title=title, scale=_scale(style), legend=legend),
        "shape": alt.Shape(name, title=title, scale=shapes, legend=legend),
    }


def _tooltip(style: LineStyle, published: bool) -> list[alt.Tooltip]:
    number, error = style.error.number, style.error
    places = [
        alt.Tooltip(f"{style.figure.x}:O", title=style.x.label),
        alt.Tooltip(f"{style.figure.colour}:O", title=style.colour.label),
    ]
    if published:
        return [*places, alt.Tooltip(f"{style.height}:Q", title="published", format=number)]
    mean = "geometric" if error.compared_by == "ratio" else "arithmetic"
    return [
        *places,
        alt.Tooltip("error_min:Q", title=f"smallest {error.name}", format=number),
        alt.Tooltip("error_mean:Q", title=f"mean ({mean})", format=number),
        alt.Tooltip("error_low:Q", title="95 % from", format=number),
        alt.Tooltip("error_high:Q", title="95 % to", format=number),
        alt.Tooltip("seeds:Q", title="seeds"),
        alt.Tooltip("stuck:Q", title="stuck seeds"),
        alt.Tooltip("diverged:Q", title="diverged seeds"),
    ]


def _seeds(style: LineStyle, rows: pd.DataFrame, x: alt.X) -> list[alt.Chart]:
    """Every run: a dot; a cross if it is stuck, a bold one at the top if it diverged.

    An error of zero or less has no place on a logarithmic axis: a triangle at its lower end.
    """
    base = _visible(style, alt.Chart(rows)).encode(
        x=x,
        y=y_axis(style, "error"),
        tooltip=[
            alt.Tooltip("seed:O"),
            alt.Tooltip("state:N", title="this seed"),
            alt.Tooltip("error:Q", title=style.error.name, format=style.error.number),
        ],
    )
    name = f"{style.figure.colour}:N"
    dots = base.transform_filter("datum.state == 'trained'").mark_point(
        size=14, strokeWidth=2, opacity=FAINTEST
    )
    stuck = base.transform_filter("datum.state == 'stuck'").mark_point(
        size=45, shape="M-1,-1L1,1M-1,1L1,-1", strokeWidth=1.5, opacity=1
    )
    lost = base.transform_filter("datum.state == 'diverged'").mark_point(
        size=90, shape="M-1,-1L1,1M-1,1L1,-1", strokeWidth=3.5, opacity=1
    )
    stroke = alt.Stroke(name, scale=_scale(style), legend=None)
    layers = [dots.encode(stroke=stroke)]
    if (rows["state"] == "stuck").any():
        layers.append(stuck.encode(stroke=stroke))
    if rows["state"].isin(["zero", "negative"]).any():
        low = "datum.state == 'zero' || datum.state == 'negative'"
        none = base.transform_filter(low).mark_point(
            size=70, shape="triangle-down", strokeWidth=2, opacity=1
        )
        layers.append(none.encode(stroke=stroke))
    if (rows["state"] == "diverged").any():
        layers.append(lost.encode(stroke=stroke))
    return layers


def _notes(style: LineStyle, rows: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Rules with their label above them; words at a height of their own where they have one."""
    high = rows[style.height].notna() if style.height in rows else pd.Series(False, rows.index)
    rules, words = rows[~high], rows[high]
    layers = []
    if len(rules):
        base = alt.Chart(rules).encode(x=x)
        layers.append(base.mark_rule(color=GREY, strokeDash=[3, 3], strokeWidth=1.5))
        text = base.mark_text(color=GREY, fontSize=14, baseline="bottom", dy=-5)
        layers.append(text.encode(y=alt.value(0), text="label:N").properties(name="note_rule"))
    if len(words):
        layers += _words(style, words, x, y)
    return layers


def _words(style: LineStyle, rows: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Words beside a point: to its right, but to the left of the last one, where there is room."""
    last = rows[style.figure.x] == style.last
    layers = []
    for name, here, align, dx in (("left", rows[last], "right", -9), ("", rows[~last], "left", 9)):
        if len(here):
            text = alt.Chart(here).mark_text(color=GREY, fontSize=16, align=align, dx=dx)
            encoded = text.encode(x=x, y=y, text="label:N")
            layers.append(encoded.properties(name=f"note_word{name}"))
    return layers
