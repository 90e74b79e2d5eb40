"""Figures and tables as files, each of which appears whole or not at all."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import altair as alt
import pandas as pd

from headwise.core.errors import InputError


def figure_files(name: str, chart: alt.TopLevelMixin, data: pd.DataFrame) -> dict[str, bytes]:
    """The figure as PNG and SVG, and what it draws as CSV."""
    files = {f"{name}.csv": data.to_csv(index=False).encode()}
    for kind in ("png", "svg"):
        with tempfile.NamedTemporaryFile(suffix=f".{kind}") as scratch:
            chart.save(scratch.name, ppi=200)
            files[f"{name}.{kind}"] = Path(scratch.name).read_bytes()
    return files


def save_chart(chart: alt.TopLevelMixin, path: str | Path) -> None:
    """Write a chart as .png, .svg, .pdf or .html."""
    chart.save(str(path), **({"scale_factor": 2} if str(path).endswith(".png") else {}))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files into the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            scratch = folder / f".{name}.partial"
            scratch.write_bytes(content)
            os.replace(scratch, folder / name)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}") from error
