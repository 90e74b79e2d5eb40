"""From a store to a folder: report.html, figures as PNG and SVG, and their data."""

from pathlib import Path

from headwise.core.errors import require
from headwise.lab.result import StudyResult
from headwise.lab.store import Store
from headwise.report.files import figure_files, write_files
from headwise.report.pages.study import study_page
from headwise.report.pages.template import render_page
from headwise.studies import find_study


def report(
    store: str | Path,
    study: str | None = None,
    tier: str | None = None,
    out: str | Path = "report",
) -> Path:
    """Rebuild a study's report (HTML, PNG, SVG, CSV) from its store; gives the page's path.

    `study` is needed if the store holds several; `tier` is the one with most finished runs
    unless it is given.
    """
    with Store(store) as results:
        rows = [
            row for row in results.studies() if study in (None, row[0]) and tier in (None, row[1])
        ]
        require(len(rows) > 0, f"{store} holds no such study; see: headwise study status")
        names = sorted({row[0] for row in rows})
        require(len(names) == 1, f"{store} holds {', '.join(names)}: choose one with --study")
        name, level, _, _ = max(rows, key=lambda row: row[2])
        result = StudyResult.of(results, find_study(name), level)
    return write_report(result, Path(out))


def write_report(result: StudyResult, folder: Path) -> Path:
    """Write the page, the figures and the data of a result; gives the page's path.

    A figure's files are named after the study and the figure, so that they can lie beside others.
    """
    page = study_page(result)
    files: dict[str, bytes] = {}
    for figure in page.figures:
        files |= figure_files(figure.name, figure.printed, figure.drawn.data)
    files["runs.csv"] = result.table.to_csv(index=False).encode()
    files["report.html"] = render_page(page).encode()
    write_files(folder, files)
    return folder / "report.html"
