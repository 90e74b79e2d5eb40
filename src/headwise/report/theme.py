"""How every figure and page looks: the one palette, font and heading.

Colours of categories are Okabe and Ito's, which are told apart with any kind of colour vision.
Marks stand on a white ground in print and on a dark one at night: every colour of a line or a
point has a contrast of 3:1 at least on both (WCAG 1.4.11). Cells are shown in viridis.
"""

import json
from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

import altair as alt

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
"""Colours of categories, in the order in which to use them."""

RAMP = ("#7d5bd6", "#3f73d9", "#0080a8", "#008c72", "#6b8600", "#b07400", "#d55e00", "#d0407c")
"""Colours of ordered lines, first to last: as light as one another, so that all are seen."""

SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right")
"""Shapes of points, for readers whom colours do not help."""

DASHES = ((6, 4), (2, 3), (9, 3, 2, 3), (12, 4), (1, 4), (4, 2, 1, 2, 1, 2), (8, 2), (3, 6))
"""Patterns of reference lines."""

GREY = "#767676"
"""What stands behind the data: references, rules, notes."""

FAINTEST = 0.87
"""The least opacity at which a mark in a colour of the ramp, or in grey, keeps that contrast."""

SHADES = ("#bbbbbb", "#f2f2f2")
"""Cells without a number: two kinds of nothing to show."""

FAINT = "#f4f7fa"
"""The low end of a scale that ends in BLUE."""

SCHEME = "viridis"
"""Colours of cells."""

GROUNDS = ("#ffffff", "#14181d")
"""What figures stand on: paper, and a page at night."""

FONT = "sans-serif"

EMBED_OPTIONS: dict[str, Any] = {"actions": False, "renderer": "svg"}
"""No menu at a figure's corner: pages have links of their own, and none leaves the machine."""

_FEW_DECADES = 300  # an axis over less names numbers between its powers of ten
_MOST_DECADES = 12  # that an axis names

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_NUMBERS = {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["$", ""]}
_LOOK: dict[str, Any] = {
    "font": FONT,
    "background": GROUNDS[0],
    "axis": {
        "labelFontSize": 14,
        "titleFontSize": 15,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridOpacity": 0.6,
    },
    "legend": {
        "labelFontSize": 14,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "labelLimit": 360,
    },
    "title": {"fontSize": 17, "subtitleFontSize": 13, "subtitleLineHeight": 17},
    "header": {"labelFontSize": 13, "titleFontSize": 13},
    "view": {"stroke": "transparent"},
    "locale": {"number": {**_NUMBERS, "percent": "\u00a0%"}},  # as the text has it: 75 %
}


def ordered(count: int) -> list[str]:
    """Colours for so many lines in their order, as far apart as the ramp allows."""
    if count > len(RAMP):
        return [_between(i * (len(RAMP) - 1) / (count - 1)) for i in range(count)]
    last = max(1, count - 1)
    return [RAMP[round(i * (len(RAMP) - 2) / last)] for i in range(count)]


def _between(place: float) -> str:
    """The colour at a place along the ramp, mixed from its neighbours."""
    at = min(int(place), len(RAMP) - 2)
    ends = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in RAMP[at : at + 2]]
    mixed = (a + (b - a) * (place - at) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{round(each):02x}" for each in mixed)


def decades(first: int, last: int, step: int = 1) -> alt.Axis:
    """A logarithmic axis with labels such as 10⁻³ at powers of ten."""
    powers = range(first, last + 1, step)
    labels = {str(power): f"10{str(power).translate(_RAISED)}" for power in powers}
    return alt.Axis(
        values=[10.0**power for power in powers],
        labelExpr=f"({json.dumps(labels)})[toString(round(log(datum.value) / LN10))]",
        labelSeparation=4,
    )


def logarithmic(low: float, high: float) -> alt.Axis:
    """Powers of ten between these ends; numbers between them, too, where there are few."""
    first, last = ceil(log10(low)), floor(log10(high))  # the axis has nothing beyond its ends
    if high < _FEW_DECADES * low:
        values = [m * 10.0**power for power in range(first - 1, last + 1) for m in (1, 2, 5)]
        return alt.Axis(format="~g", values=[v for v in values if low <= v <= high])
    return decades(first, last, step=max(1, ceil((last - first) / _MOST_DECADES)))


def told(*names: str, **formats: str) -> list[alt.Tooltip]:
    """What a mark tells when pointed at: columns in words, then numbers in their formats."""
    plain = [alt.Tooltip(name, title=in_words(name)) for name in names]
    return plain + [
        alt.Tooltip(f"{name}:Q", title=in_words(name), format=each)
        for name, each in formats.items()
    ]


def in_words(name: str) -> str:
    """A column's name as people write it."""
    return name.partition(":")[0].replace("_", " ")


def heading(title: str, subtitle: str | Sequence[str] = "") -> alt.TitleParams:
    """A figure's title, and smaller lines below it."""
    lines = subtitle if isinstance(subtitle, str) else list(subtitle)
    more = {"subtitle": lines} if lines else {}
    return alt.TitleParams(title, anchor="start", offset=12, **more)


def panel_title(title: str) -> alt.TitleParams:
    """The title of one panel of several."""
    return alt.TitleParams(title, anchor="start", fontSize=14, fontWeight="normal", color=GREY)


def finished(chart: Any, title: str | None = None, subtitle: str | Sequence[str] = "") -> Any:
    """The chart with its heading, in headwise's look, on white."""
    if title is not None:
        chart = chart.properties(title=heading(title, subtitle))
    return chart.configure(**_LOOK)
