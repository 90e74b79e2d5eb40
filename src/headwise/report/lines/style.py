"""What the panels of a line figure share: axes, colours, shapes and patterns."""

from dataclasses import dataclass
from math import ceil, floor, log2, log10
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from headwise.lab.kinds import Column, Quantity
from headwise.lab.study import Figure
from headwise.lab.summary import readable_value
from headwise.report.theme import DASHES, SHAPES, logarithmic, ordered

_LONGEST_TITLE = 34  # letters
_FEW = 5  # values that an axis can name one by one, whatever they are


@dataclass(frozen=True)
class LineStyle:
    """What all panels of a figure share: the columns' titles, the axes, colours by value."""

    figure: Figure
    x: Column
    colour: Column
    error: Quantity
    score: str  # "smallest" or "mean"
    domain: tuple[float, float]
    values: tuple[Any, ...]
    known: tuple[Any, ...]  # the values that any figure of the study has: each has one colour
    labels: tuple[str, ...]  # of references that are lines
    points: tuple[str, ...]  # of references that are a point in each panel
    last: Any  # the greatest value on the axis below
    for_page: bool = False

    @property
    def height(self) -> str:
        """The column that stands for a setting."""
        return "error_mean" if self.score == "mean" else "error_min"

    @property
    def colours(self) -> dict[Any, str]:
        """The colour of each line, by its value."""
        known = dict(zip(self.known, ordered(len(self.known)), strict=True))
        return {value: known[value] for value in self.values}

    @property
    def shapes(self) -> dict[Any, str]:
        """The shape of each line's points."""
        known = {value: SHAPES[i % len(SHAPES)] for i, value in enumerate(self.known)}
        return {value: known[value] for value in self.values}

    @property
    def dashes(self) -> dict[str, list[int]]:
        """The pattern of each reference."""
        return {label: list(DASHES[i % len(DASHES)]) for i, label in enumerate(self.labels)}


def ordered_values(values: set[Any]) -> list[Any]:
    """In order; numbers and words together as words."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def comparable(figure: Figure, *frames: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    """The frames with columns of numbers and words together as words: an axis is of one kind."""
    names = [name for name in figure.columns if any(_mixed(rows, name) for rows in frames)]
    return tuple(
        rows.assign(**{name: rows[name].map(readable_value) for name in names if name in rows})
        for rows in frames
    )


def _mixed(rows: pd.DataFrame, name: str) -> bool:
    words = [isinstance(value, str) for value in rows[name].dropna()] if name in rows else []
    return any(words) and not all(words)


def x_axis(style: LineStyle, values: list[Any]) -> alt.X:
    """The axis of what the errors stand against, with a tick at each of the values."""
    title = in_lines(style.x.label)
    axis = alt.Axis(
        labelAngle=0, values=values, grid=False, labelOverlap="greedy", labelSeparation=4
    )
    if style.figure.x == "rank_share":
        axis.labelExpr = "datum.value < 1 ? '1/' + round(1 / datum.value) : '1'"
    elif any(isinstance(value, float) and not value.is_integer() for value in values):
        axis.labelExpr = "format(datum.value, '.6~g')"  # 0.1 + 0.2 is 0.3
    if style.figure.x_log and values[0] > 0:
        low, high = float(values[0]), float(values[-1])
        axis.values = _named_values(values)
        ends = [low, high] if high > low else [low / 2, low * 2]
        scale = alt.Scale(type="log", base=2, nice=False, padding=14, domain=ends)
        return alt.X(f"{style.figure.x}:Q", title=title, axis=axis, scale=scale)
    return alt.X(f"{style.figure.x}:O", title=title, axis=axis)


def _named_values(values: list[Any]) -> list[Any]:
    """What a logarithmic axis names: its values, or round numbers where these are many and odd."""
    if len(values) <= _FEW or all(_is_round(float(value)) for value in values):
        return values
    powers = range(floor(log10(values[0])), ceil(log10(values[-1])) + 1)
    between = [m * 10.0**power for power in powers for m in (1, 2, 5)]
    inside = [value for value in between if values[0] <= value <= values[-1]]
    return inside if len(inside) > 1 else values


def _is_round(value: float) -> bool:
    """Has it two digits at most, or is it a power of two?"""
    return float(f"{value:.2g}") == value or (value > 0 and log2(value).is_integer())


def y_axis(style: LineStyle, name: str) -> alt.Y:
    """The axis of errors for the column of that name: all layers share it."""
    error, column = style.error, f"{name}:Q"
    low, high = axis_ends(style)
    score = error.mean if style.score == "mean" else style.score
    title = f"{error.name}, {score} over seeds"
    if error.compared_by == "difference":
        title = f"{error.name}, {error.unit}, {score} over seeds"
        scale = alt.Scale(domain=[low, high], nice=False)
        return alt.Y(column, title=in_lines(title), scale=scale, axis=alt.Axis(tickCount=6))
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    return alt.Y(column, title=in_lines(title), axis=logarithmic(low, high), scale=scale)


def in_lines(title: str, longest: int = _LONGEST_TITLE) -> str | list[str]:
    """The title of an axis, in two lines where one would be longer than the panel."""
    if len(title) <= longest:
        return title
    words = title.split(", ")
    parts = [(", ".join(words[:k]) + ",", ", ".join(words[k:])) for k in range(1, len(words))]
    best = min(parts, key=lambda pair: max(map(len, pair)), default=())
    fits = best and max(map(len, best)) <= longest
    return list(best) if fits else _balanced(title, longest)


def _balanced(text: str, longest: int) -> list[str]:
    """As few lines as it takes, none much shorter than the others."""
    count = len(wrap(text, longest))
    narrower = (wrap(text, width) for width in range(max(1, len(text) // count), longest + 1))
    return next(lines for lines in narrower if len(lines) <= count)


def axis_ends(style: LineStyle) -> tuple[float, float]:
    """Where the axis of errors begins and ends: room around the data, zero where it is near."""
    low, high = style.domain
    if style.error.compared_by == "ratio":
        return low / 1.8, high * 1.8
    margin = 0.06 * ((high - low) or abs(low) or 1.0)
    near_zero = 0 < low < high - low
    return (0.0 if near_zero else low - margin), high + margin


def finite_ends(
    points: pd.DataFrame, seeds: pd.DataFrame, style_height: str, positive: bool
) -> tuple[float, float] | None:
    """The least and largest number to show; None where there is none.

    Intervals belong to it, but one of few seeds can be endless: it may double the range at most.
    """
    heights = pd.concat([points[style_height], seeds["error"]]).to_numpy(float)
    heights = heights[np.isfinite(heights) & ((heights > 0) | (not positive))]
    if not len(heights):
        return None
    low, high = float(heights.min()), float(heights.max())
    if style_height == "error_min":
        return low, high
    bars = points[["error_low", "error_high"]].to_numpy(float)
    bars = bars[np.isfinite(bars) & ((bars > 0) | (not positive))]
    if not len(bars):
        return low, high
    if positive:
        room = high / low
        return max(float(bars.min()), low / room), min(float(bars.max()), high * room)
    room = high - low
    return min(low, max(float(bars.min()), low - room)), max(
        high, min(float(bars.max()), high + room)
    )
