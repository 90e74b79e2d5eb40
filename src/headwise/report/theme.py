"""How every figure and page looks: the one palette, font and heading.

The colours are Okabe and Ito's, which are told apart with any kind of colour vision; quantities
are shown in viridis, which also reads in grey.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
"""Colours of categories, in the order in which to use them."""

GREY = "#707070"
"""What stands behind the data: references, rules, notes."""

SHADES = ("#bbbbbb", "#f2f2f2")
"""Cells without a number: two kinds of nothing to show."""

FAINT = "#f4f7fa"
"""The low end of a scale that ends in BLUE."""

SCHEME = "viridis"
"""Colours of quantities."""

FONT = "sans-serif"

EMBED_OPTIONS: dict[str, Any] = {
    "actions": {"export": True, "source": False, "compiled": False, "editor": False}
}
"""The menu at a figure's corner: saves it; nothing that leaves the reader's machine."""


def heading(title: str, subtitle: str | Sequence[str] = "") -> alt.TitleParams:
    """A figure's title, and smaller lines below it."""
    lines = subtitle if isinstance(subtitle, str) else list(subtitle)
    more = {"subtitle": lines} if lines else {}
    return alt.TitleParams(title, anchor="start", offset=12, **more)


def finished(chart: Any, title: str | None = None, subtitle: str | Sequence[str] = "") -> Any:
    """The chart with its heading, in headwise's font, on white."""
    if title is not None:
        chart = chart.properties(title=heading(title, subtitle))
    return chart.configure(font=FONT, background="white")
