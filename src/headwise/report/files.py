"""Figures and tables as files, each of which appears whole or not at all."""

import io
from collections.abc import Mapping
from pathlib import Path

import altair as alt
import pandas as pd

from headwise.core.errors import require
from headwise.core.files import appearing, write_file
from headwise.report.theme import EMBED_OPTIONS

KINDS = ("png", "svg", "pdf", "html")
_PIXELS_PER_INCH = 200


def save_chart(chart: alt.TopLevelMixin, path: str | Path) -> None:
    """Write a figure to a .png, .svg, .pdf or (self-contained) .html file."""
    kind = Path(path).suffix.removeprefix(".").lower()
    names = ", ".join(f".{each}" for each in KINDS)
    require(kind in KINDS, f"a figure's file ends in one of {names}; {path} does not")
    with appearing(path) as scratch:
        if kind == "html":
            chart.save(str(scratch), format="html", inline=True, embed_options=EMBED_OPTIONS)
        else:
            chart.save(str(scratch), format=kind, ppi=_PIXELS_PER_INCH)


def figure_files(name: str, chart: alt.TopLevelMixin, data: pd.DataFrame) -> dict[str, bytes]:
    """The figure as PNG and SVG, and what it draws as CSV."""
    image, drawing = io.BytesIO(), io.StringIO()
    chart.save(image, format="png", ppi=_PIXELS_PER_INCH)
    chart.save(drawing, format="svg")
    return {
        f"{name}.csv": data.to_csv(index=False).encode(),
        f"{name}.png": image.getvalue(),
        f"{name}.svg": drawing.getvalue().encode(),
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files into the folder, which is made if it is not there."""
    for name, content in files.items():
        write_file(folder / name, content)
