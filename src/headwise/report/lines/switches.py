"""Lines that a reader of a page can switch off: there the page's legend replaces the chart's."""

from collections.abc import Mapping
from typing import Any

import altair as alt

HIDDEN = "hidden"
"""The signal that holds the values a reader of a page has switched off, as text."""


def shown_of(chart: Any, column: str, for_page: bool = True) -> Any:
    """The chart without what is switched off by the column's value, a text; in print nothing is."""
    if not for_page:
        return chart
    return chart.transform_filter(f"indexof({HIDDEN}, datum.{column}) < 0")


def with_switches(chart: Any, for_page: bool = True) -> Any:
    """The whole panel, knowing what is switched off."""
    return chart.add_params(alt.param(name=HIDDEN, value=[])) if for_page else chart


def colours_of(
    column: str, colours: Mapping[Any, str], title: str | None, legend: alt.Legend | None
) -> alt.Color:
    """The colour of each value, whichever of them are shown."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(column, title=title, scale=scale, legend=legend)
