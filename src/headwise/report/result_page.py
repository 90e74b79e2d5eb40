"""The page of a result: what it says, its figures, all of its numbers."""

from collections.abc import Mapping
from pathlib import Path

import altair as alt

from headwise.core.files import write_file
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.inspection import Inspection
from headwise.report import compression, inspection
from headwise.report.template import render_page


def write_page(result: Compressed | Inspection, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_file(path, page(result))


def page(result: Compressed | Inspection) -> str:
    """The page as text."""
    charts = _charts(result)
    table = result.table()
    return render_page(
        "result.html.j2",
        charts,
        title=result.title,
        sentences=[sentence.removeprefix("• ") for sentence in result.sentences()],
        figures=list(charts),
        columns=list(table.columns),
        rows=[[_cell(value) for value in row] for row in table.itertuples(index=False)],
    )


def _charts(result: Compressed | Inspection) -> Mapping[str, alt.TopLevelMixin]:
    if isinstance(result, Compressed):
        return compression.charts(result)
    return inspection.charts(result)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
