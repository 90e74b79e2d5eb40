"""The legend of a line figure: what its colours and dashes stand for."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from headwise.lab.result import StudyResult
from headwise.lab.study import Figure
from headwise.lab.summary import readable_value
from headwise.report.lines.names import line_name
from headwise.report.lines.style import LineStyle, ordered_values


@dataclass(frozen=True)
class Swatch:
    """An entry of a page's legend: a line's colour, or a grey reference's dash pattern."""

    value: str
    label: str
    colour: str = ""
    dash: str = ""


def legend(style: LineStyle) -> tuple[Swatch, ...]:
    """Its entries: coloured lines, then grey references."""
    lines = (
        []
        if style.figure.facet == style.figure.colour
        else [
            Swatch(readable_value(value), _swatch_name(style, value), colour)
            for value, colour in style.colours.items()
        ]
    )
    grey = [
        Swatch("", label, dash=" ".join(map(str, dash))) for label, dash in style.dashes.items()
    ]
    return (*lines, *grey)


def legend_title(style: LineStyle) -> str:
    """What the coloured names are values of; nothing where there are none, or one."""
    figure = style.figure
    untitled = figure.colour in ("part", figure.facet) or len(style.values) == 1
    return "" if untitled else style.colour.label


def known_values(result: StudyResult, figure: Figure, ours: pd.DataFrame) -> tuple[Any, ...]:
    """The values of its colour in all figures that use it: a value has one colour on a page."""
    alike = [
        each
        for each in result.study.figures
        if isinstance(each, Figure) and each.colour == figure.colour
    ]
    parts = {part for each in alike for part in each.panels}
    drawn = [
        rows.loc[rows["part"].isin(parts), figure.colour]
        for rows in (result.table, result.published)
        if figure.colour in rows
    ]
    values = pd.concat([*drawn, ours[figure.colour]]).dropna()
    worded = ours[figure.colour].map(lambda value: isinstance(value, str)).any()
    return tuple(ordered_values({*(values.map(readable_value) if worded else values).tolist()}))


def _swatch_name(style: LineStyle, value: object) -> str:
    """Beside the legend's title, a number stands alone."""
    if len(style.values) == 1:
        return f"this run, {line_name(style, value)}"
    return line_name(style, value) if style.figure.colour == "part" else readable_value(value)
