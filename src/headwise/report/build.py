"""From a store to a folder: report.html, figures as PNG and SVG, and their data."""

from collections.abc import Sequence
from os.path import relpath
from pathlib import Path

from headwise.core.errors import InputError, require
from headwise.core.files import check_can_write_into, is_folder, write_file
from headwise.core.trust import trust as trust_modules
from headwise.lab.result import StudyResult
from headwise.lab.stand_in import stand_in
from headwise.lab.store import STUDY, Store
from headwise.lab.study import Study
from headwise.lab.table import table
from headwise.report.files import figure_files, write_files
from headwise.report.pages.index import IndexEntry, index_page, page_entry
from headwise.report.pages.study import study_page
from headwise.report.pages.template import render_page
from headwise.studies import find_study, is_importable


def report(
    store: str | Path,
    study: str | None = None,
    tier: str | None = None,
    out: str | Path | None = None,
    trust: Sequence[str] = (),
    all: bool = False,
) -> Path:
    """Rebuild a study's report (HTML, PNG, SVG, CSV) from its store; gives the page's path.

    `study` is needed if the store holds several; `tier` is the one with most finished runs
    unless it is given; `out` is the folder "report" unless it is given. A study of a user's own
    module is imported if it is named as `study`, or its module is in `trust`; what only the store
    names is not, and then its runs are shown alone. With `all`, `store` is a folder: an index of
    every study in its stores is written to `out`, by default the same folder.
    """
    if all:
        require(study is None and tier is None, "an index is of all studies: no --study, no --tier")
        trust_modules(list(trust))
        return write_index(store, out)
    out = "report" if out is None else out
    check_can_write_into(out, "--out (in Python out=)", drawn=True)
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


def write_index(folder: str | Path, out: str | Path | None = None) -> Path:
    """One page on every study in the stores of a folder, and on the pages in it; gives its path.

    Every study's report is written to a folder beside the page, and linked.
    """
    folder = Path(folder)
    require(is_folder(folder), f"there is no folder {folder}")
    target = folder if out is None else Path(out)
    check_can_write_into(target, "--out (in Python out=)", drawn=True)
    entries = []
    for path in sorted(folder.rglob("*.db")):
        entries += _entries(path, target)
    for path in sorted(folder.rglob("*.html")):
        entry = page_entry(path, relpath(path, target))
        entries += [] if entry is None else [entry]
    require(len(entries) > 0, f"{folder} holds no store with a finished study, and no page")
    write_file(target / "index.html", render_page(index_page(entries)))
    return target / "index.html"


def _entries(path: Path, target: Path) -> list[IndexEntry]:
    """The studies of a store that have a finished run; other files are passed over."""
    try:
        with Store(path) as results:
            known = [row for row in results.studies() if row[2] > 0]
            found = [
                StudyResult.of(results, _study(results, row[0], row[1]), row[1]) for row in known
            ]
    except InputError:
        return []  # not a store
    entries = []
    for result in found:
        name = f"{result.study.name}-{result.tier}"
        write_report(result, target / name)
        entries.append(IndexEntry.of(result, f"{name}/report.html"))
    return entries


def _study(store: Store, name: str, tier: str) -> Study:
    """The study itself, or a stand-in where it is only a name in a file."""
    if is_importable(name):
        return find_study(name)
    found = table(store.records(f"{STUDY}{name}", tier))
    require(len(found) > 0, f"{store.path} holds no finished run of {name}, tier {tier}")
    return stand_in(name, tier, found)


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
