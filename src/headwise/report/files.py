"""Figures and tables as files, each of which appears whole or not at all."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from headwise.core.errors import require
from headwise.core.files import appearing, write_file
from headwise.core.memory import check_can_draw
from headwise.report.theme import EMBED_OPTIONS

KINDS = ("png", "svg", "pdf", "html")
_PIXELS_PER_INCH = 200
_PAPER_POINTS = 468.0  # 6.5 inches, the text of a page of letter or A4
_POINTS_PER_PIXEL = 0.75
_VERSION = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def save_chart(chart: alt.TopLevelMixin, path: str | Path) -> None:
    """Write a figure to a .png, .svg, .pdf or (self-contained) .html file."""
    kind = Path(path).suffix.removeprefix(".").lower()
    names = ", ".join(f".{each}" for each in KINDS)
    require(kind in KINDS, f"a figure's file ends in one of {names}; {path} does not")
    check_can_draw()
    with appearing(path) as scratch:
        if kind == "html":
            chart.save(str(scratch), format="html", inline=True, embed_options=EMBED_OPTIONS)
        else:
            chart.save(str(scratch), format=kind, ppi=_PIXELS_PER_INCH)


@dataclass(frozen=True)
class PaperFigure:
    """A figure at the width of a paper's text; smaller ones stay as they are."""

    svg: str

    @cached_property
    def pdf(self) -> bytes:
        """The same as PDF."""
        return bytes(vl_convert.svg_to_pdf(self.svg))

    @property
    def png(self) -> bytes:
        """The same as PNG."""
        return bytes(vl_convert.svg_to_png(self.svg, ppi=_PIXELS_PER_INCH))


def svg_of(chart: alt.TopLevelMixin | Mapping[str, Any]) -> str:
    """A chart as SVG."""
    check_can_draw()
    data = dict(chart) if isinstance(chart, Mapping) else chart.to_dict()
    return str(vl_convert.vegalite_to_svg(_drawable(data), vl_version=_VERSION))


def _drawable(data: Any) -> Any:
    """Whole numbers of more than 53 bits, such as a count of parameters, as JavaScript has them."""
    if isinstance(data, dict):
        return {key: _drawable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_drawable(value) for value in data]
    return float(data) if type(data) is int and abs(data) > 2**53 else data


def printed(chart: alt.TopLevelMixin) -> PaperFigure:
    """A chart for print."""
    drawn = svg_of(chart)
    width, height = _size(drawn)
    scale = min(_POINTS_PER_PIXEL, _PAPER_POINTS / width)
    size = f'width="{width * scale:.1f}pt" height="{height * scale:.1f}pt"'
    return PaperFigure(_SIZE.sub(size, drawn, count=1))


def figure_files(name: str, figure: PaperFigure, data: pd.DataFrame) -> dict[str, bytes]:
    """The figure as PNG, SVG and PDF, and what it draws as CSV."""
    return {
        f"{name}.csv": data.to_csv(index=False).encode(),
        f"{name}.png": figure.png,
        f"{name}.svg": figure.svg.encode(),
        f"{name}.pdf": figure.pdf,
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files into the folder, which is made if it is not there."""
    for name, content in files.items():
        write_file(folder / name, content)


def _size(svg: str) -> tuple[float, float]:
    found = _SIZE.search(svg)
    assert found is not None
    return float(found[1]), float(found[2])
