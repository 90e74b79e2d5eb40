"""The lines' names at their ends, instead of a legend where there is room.

Names that would overprint one another are moved apart, up or down, by as little as it takes; where
that is so far that a name would stand at another line's end, the legend names the lines.
"""

from math import log10

import altair as alt
import numpy as np
import pandas as pd

from headwise.lab.summary import readable_value
from headwise.report.lines.style import LineStyle, axis_ends
from headwise.report.theme import GREY

_LINE_OF_TEXT = 0.062  # of the height of a panel
_FARTHEST = 0.05  # of the same: how far from its line's end a name is still read as the line's
_MOST = 7  # more names than these would be a column of text
_LONGEST = 16  # letters; longer names have no room beside a panel


def named_in_place(style: LineStyle, ours: pd.DataFrame) -> bool:
    """Whether all lines end at the same place, and their names fit beside it."""
    ends = _ends_of_lines(style, ours)
    names = [line_name(style, value) for value in style.values]
    if not 2 <= len(names) <= _MOST or max(map(len, names)) > _LONGEST:
        return False
    if ends[style.figure.colour].nunique() != len(names):
        return False
    places = _shares(style, ends.sort_values(style.height))
    return bool(np.abs(apart(places, _LINE_OF_TEXT) - places).max() <= _FARTHEST)


def names_at_ends(style: LineStyle, ours: pd.DataFrame) -> pd.DataFrame:
    """One row a line: where its name stands, and the name."""
    ends = _ends_of_lines(style, ours).sort_values(style.height)
    low, high = axis_ends(style)
    placed = apart(_shares(style, ends), _LINE_OF_TEXT)
    ratio = style.error.compared_by == "ratio"
    heights = low * (high / low) ** placed if ratio else low + (high - low) * placed
    labels = [line_name(style, value) for value in ends[style.figure.colour]]
    return ends.assign(**{style.height: heights}, label=labels)


def _shares(style: LineStyle, ends: pd.DataFrame) -> np.ndarray:
    """How high the points stand in the panel, from 0 to 1."""
    low, high = axis_ends(style)
    heights = ends[style.height].to_numpy(float)
    if style.error.compared_by == "ratio":
        low, high, heights = log10(low), log10(high), np.log10(heights)
    shares: np.ndarray = (heights - low) / (high - low)
    return shares


def apart(places: np.ndarray, gap: float) -> np.ndarray:
    """Places in [0, 1], given in order, moved by as little as it takes to be a gap apart.

    Half a gap is kept to the ends, where there is room: names do not leave the panel.
    """
    groups: list[tuple[float, int]] = []  # the middle of neighbours that touch, and how many
    for place in places:
        middle, count = _inside(float(place), gap / 2), 1
        while groups and middle - groups[-1][0] < gap * (count + groups[-1][1]) / 2:
            before, many = groups.pop()
            middle, count = (middle * count + before * many) / (count + many), count + many
            middle = _inside(middle, gap * count / 2)
        groups.append((middle, count))
    spread = [
        middle + gap * (k - (count - 1) / 2) for middle, count in groups for k in range(count)
    ]
    return np.asarray(spread)


def _inside(middle: float, half: float) -> float:
    """The middle of something so tall, moved to where all of it is in [0, 1]."""
    return min(max(middle, half), 1 - half) if half <= 0.5 else middle


def name_layers(style: LineStyle, chart: alt.Chart, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The names as text, for a chart of what `names_at_ends` gives."""
    text = chart.mark_text(align="left", dx=10, fontSize=14, color=GREY)
    return [text.encode(x=x, y=y, text="label:N").properties(name="note_line")]


def line_name(style: LineStyle, value: object) -> str:
    """What a line is called in the figure."""
    if style.figure.colour == "part":
        return style.figure.panels.get(str(value), str(value))
    symbol = f"{style.colour.symbol} = " if style.colour.symbol else ""
    return f"{symbol}{readable_value(value)}"


def _ends_of_lines(style: LineStyle, ours: pd.DataFrame) -> pd.DataFrame:
    """The last point of each line, where all lines end at the same place."""
    known = ours[ours[style.height].notna()]
    last = known[known[style.figure.x] == known[style.figure.x].max()]
    return last.drop_duplicates(style.figure.colour)
