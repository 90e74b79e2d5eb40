"""Pieces of the pages of results: sentences, figures and tables from what a result holds."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from headwise.report.figures import DrawnFigure
from headwise.report.lines.legend import Swatch
from headwise.report.pages.content import PageFigure, PageTable
from headwise.report.theme import finished, in_words, panel_title

_LONG = 10_000  # numbers from here on are read by their thousands


def sentence(text: str) -> str:
    """A line of a result's text as a sentence."""
    text = text.removeprefix("• ").strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def whole_figure(name: str, title: str, chart: Any, data: pd.DataFrame) -> PageFigure:
    """A figure of one panel; its title and subtitle stand on the page."""
    bare = chart.copy()
    bare.title = ""
    drawn = DrawnFigure(data, lambda: chart, ("",), lambda: {"": bare})
    return PageFigure(name, title, drawn, subtitle(chart))


def subtitle(chart: Any) -> str:
    """What a chart says below its title."""
    said = chart.to_dict().get("title", {})
    lines = said.get("subtitle", "") if isinstance(said, dict) else ""
    return lines if isinstance(lines, str) else " ".join(lines)


def panel_figure(
    name: str,
    title: str,
    panels: dict[str, Any],
    data: pd.DataFrame,
    chart: Any = None,
    caption: str = "",
    legend: tuple[str, Mapping[str, str]] = ("", {}),
) -> PageFigure:
    """A figure of several panels; `chart` is the whole of it where it has one of its own.

    `legend` is the page's: its title, and colours by what they stand for.
    """
    titled = [panel.properties(title=panel_title(each)) for each, panel in panels.items()]
    whole = chart or finished(
        alt.concat(*titled, columns=2).resolve_scale(color="independent"), title
    )
    on_page = {each: finished(panel) for each, panel in panels.items()}
    called, colours = legend
    swatches = tuple(Swatch(value, value, colour) for value, colour in colours.items())
    swatches = swatches if len(swatches) > 1 else ()  # one line needs no name
    drawn = DrawnFigure(data, lambda: whole, tuple(on_page), lambda: on_page, swatches, called)
    return PageFigure(name, title, drawn, caption)


def number_table(title: str, rows: pd.DataFrame) -> PageTable:
    """All rows, numbers to four digits."""
    cells = [[_cell(value) for value in row] for row in rows.itertuples(index=False)]
    return PageTable(title, [in_words(str(column)) for column in rows.columns], cells)


def _cell(value: object) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= _LONG:
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
