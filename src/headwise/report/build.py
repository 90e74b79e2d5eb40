"""From a store to a folder: report.html, figures as PNG and SVG, and their data."""

from collections.abc import Sequence
from pathlib import Path

from headwise.core.errors import require
from headwise.core.files import check_can_write_into, write_file
from headwise.core.trust import trust as trust_modules
from headwise.lab.result import StudyResult
from headwise.lab.stand_in import stand_in
from headwise.lab.store import STUDY, Store
from headwise.lab.study import Study
from headwise.lab.table import table
from headwise.report.files import figure_files
from headwise.report.page import render
from headwise.studies import find_study, is_importable


def report(
    store: str | Path,
    study: str | None = None,
    tier: str | None = None,
    out: str | Path = "report",
    trust: Sequence[str] = (),
) -> Path:
    """Rebuild a study's report (HTML, PNG, SVG, CSV) from its store; gives the page's path.

    `study` is needed if the store holds several; `tier` is the one with most finished runs
    unless it is given. A study of a user's own module is imported if it is named as `study`, or
    its module is in `trust`; what only the store names is not, and then its runs are shown alone.
    """
    check_can_write_into(out, "--out (in Python out=)")
    trust_modules([*trust, *([study.partition(":")[0]] if study and ":" in study else [])])
    with Store(store) as results:
        rows = [
            row for row in results.studies() if study in (None, row[0]) and tier in (None, row[1])
        ]
        require(len(rows) > 0, f"{store} holds no such study; see: headwise study status")
        names = sorted({row[0] for row in rows})
        require(len(names) == 1, f"{store} holds {', '.join(names)}: choose one with --study")
        name, level, _, _ = max(rows, key=lambda row: row[2])
        result = StudyResult.of(results, _study(results, name, level), level)
    return write_report(result, Path(out))


def _study(store: Store, name: str, tier: str) -> Study:
    """The study itself, or a stand-in where it is only a name in a file."""
    if is_importable(name):
        return find_study(name)
    found = table(store.records(f"{STUDY}{name}", tier))
    require(len(found) > 0, f"{store.path} holds no finished run of {name}, tier {tier}")
    return stand_in(name, tier, found)


def write_report(result: StudyResult, folder: Path) -> Path:
    """Write the page, the figures and the data of a result; gives the page's path."""
    files: dict[str, bytes] = {}
    for name, drawn in result.charts.items():
        files |= figure_files(name, drawn.chart, drawn.data)
    files["runs.csv"] = result.table.to_csv(index=False).encode()
    files["report.html"] = render(result).encode()
    for name, content in files.items():
        write_file(folder / name, content)
    return folder / "report.html"
