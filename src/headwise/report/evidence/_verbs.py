"""What can be done with evidence: add a study's table, make the pages, check and compare them."""

import tempfile
from pathlib import Path

from headwise.core.errors import InputError, require
from headwise.core.files import check_can_write, check_can_write_into, is_folder, write_file
from headwise.core.progress import OnProgress, quiet
from headwise.lab.conduct import conduct
from headwise.lab.crew import LOCAL, Place
from headwise.lab.result import StudyResult
from headwise.lab.store import Store
from headwise.lab.table import table
from headwise.lab.work import cpu_kind
from headwise.lab.work import versions as versions_here
from headwise.report.evidence.compare import ComparedEvidence
from headwise.report.evidence.gather import TIER, gather
from headwise.report.evidence.html import evidence_page, without_drawings
from headwise.report.evidence.rerun import RerunEvidence, drawn_keys
from headwise.report.evidence.tables import read_table, what_is_wrong, write_table
from headwise.report.evidence.words import markdown
from headwise.studies import STUDIES, find_study

FOLDER, DOCS = Path("evidence"), Path("docs/evidence.md")
_PAGE = "index.html"


def add_evidence(
    store: str | Path, study: str | None = None, tier: str = TIER, folder: str | Path = FOLDER
) -> Path:
    """Put a study's finished tier from a store into the folder of evidence; gives the file.

    `study` is needed if the store holds several. A tier that was not run whole is refused.
    """
    check_can_write_into(folder, "--folder (in Python folder=)")
    result, versions = _held_tier(store, study, tier)
    path = Path(folder) / f"{result.study.name}.parquet"
    write_table(result, versions, path)
    return path


def compare_evidence(
    store: str | Path, study: str | None = None, tier: str = TIER, folder: str | Path = FOLDER
) -> ComparedEvidence:
    """A store's own run of a tier beside the table in the folder of evidence, claim by claim.

    `study` is needed if the store holds several. A tier that was not run whole is refused.
    """
    folder = _with_tables(folder)
    yours, _ = _held_tier(store, study, tier)
    path = folder / f"{yours.study.name}.parquet"
    require(path.is_file(), f"{folder} has no table of {yours.study.name}")
    shipped = read_table(path, yours.study).result
    require(shipped.tier == tier, f"{path} is of tier {shipped.tier}, not of {tier}")
    wrong = what_is_wrong(yours.study, tier, shipped.table)
    require(not wrong, f"{path}: {wrong}")
    wrong = what_is_wrong(yours.study, tier, yours.table)
    require(not wrong, f"{store}: {wrong}")
    return ComparedEvidence.of(shipped, yours)


def rerun_evidence(
    study: str,
    minutes: float = 2.0,
    seed: int = 0,
    folder: str | Path = FOLDER,
    jobs: int | None = None,
    data: str | Path | None = None,
    on_progress: OnProgress = quiet,
) -> RerunEvidence:
    """Some runs of a study's table again, `minutes` of CPU time of them, drawn by the `seed`.

    Measurements of a trained network train it first, which comes on top. `data` is what the study
    was run on, where it does not have it itself.
    """
    folder = _with_tables(folder)
    found = find_study(study)
    path = folder / f"{found.name}.parquet"
    require(path.is_file(), f"{folder} has no table of {found.name}")
    shipped = read_table(path, found)
    tier, rows = shipped.result.tier, shipped.result.table
    wrong = what_is_wrong(found, tier, rows)
    require(not wrong, f"{path}: {wrong}")
    keys = set(drawn_keys(rows, minutes, seed))
    planned = found.runs(tier, data=None if data is None else str(data))
    parts = {part: [run for run in runs if run.key in keys] for part, runs in planned.items()}
    missing = keys - {run.key for runs in parts.values() for run in runs}
    require(
        not missing,
        f"{path} was run on other data than these: give what it was run on with --data (in Python "
        "data=)",
    )
    with tempfile.TemporaryDirectory() as scratch, Store(Path(scratch) / "again.db", True) as store:
        conduct(
            store,
            found.owner,
            tier,
            parts,
            Place(LOCAL, jobs),
            lambda state: on_progress(state.fraction, str(state)),
            fail_fast=True,
        )
        again = table(store.records(found.owner, tier))
    here = set(rows[rows["key"].isin(keys)]["cpu"]) == {cpu_kind()}
    like = here and shipped.versions == versions_here()
    return RerunEvidence.of_tables(found, tier, rows, again, like)


def _held_tier(
    store: str | Path, study: str | None, tier: str
) -> tuple[StudyResult, dict[str, str]]:
    """What a store holds of a study that comes with headwise, and the versions that made it."""
    with Store(store) as results:
        known = sorted({row[0] for row in results.studies() if row[1] == tier})
        names = [name for name in known if study in (None, name)]
        require(len(names) > 0, f"{store} holds no run of tier {tier}; see: headwise study status")
        require(len(names) == 1, f"{store} holds {', '.join(names)}: choose one with --study")
        require(names[0] in STUDIES, f"{names[0]} is no study that comes with headwise")
        found = find_study(names[0])
        result = StudyResult.of(results, found, tier)
        made = [record.versions for _, record in results.records(found.owner, tier)]
    versions = {
        name: ", ".join(sorted({each[name] for each in made if name in each})) for name in made[0]
    }
    return result, versions


def write_evidence(
    folder: str | Path = FOLDER, docs: str | Path | None = DOCS, jobs: int | None = None
) -> Path:
    """Make index.html in the folder, and the Markdown page `docs` (None: none), of its tables.

    Tables are judged by `jobs` processes; by default by as many as there are cores.
    """
    folder = _with_tables(folder)
    check_can_write_into(folder, "--folder (in Python folder=)")
    check_can_write(docs, "--docs (in Python docs=)")
    wrong = _stale(folder)
    require(not wrong, "; ".join(wrong))
    papers = gather(folder, jobs)
    path = folder / _PAGE
    write_file(path, evidence_page(papers))
    if docs is not None:
        write_file(docs, markdown(papers))
    return path


def _with_tables(folder: str | Path) -> Path:
    """The folder, which must be there: a page of nothing would say that nothing was ever run."""
    folder = Path(folder)
    require(is_folder(folder), f"there is no folder {folder}; headwise evidence add makes it")
    return folder


def check_evidence(
    folder: str | Path = FOLDER, docs: str | Path | None = DOCS, jobs: int | None = None
) -> list[str]:
    """Recompute every claim, figure and sentence from the tables; gives what is wrong, if anything.

    A table is wrong if its runs are not those that the study's tier has; a page if it does not say
    what its tables say. Nothing is trained. Tables are judged by `jobs` processes; by default by as
    many as there are cores.
    """
    folder = _with_tables(folder)
    wrong = _stale(folder)
    if wrong:
        return wrong
    papers = gather(folder, jobs)
    pages = {folder / _PAGE: without_drawings(evidence_page(papers, drawn=False))}
    if docs is not None:
        pages[Path(docs)] = markdown(papers)
    for path, text in pages.items():
        there = path.read_text() if path.is_file() else ""
        if without_drawings(there) != text:
            wrong.append(
                f"{path} is not what its tables say; make it again: headwise evidence page"
            )
    return wrong


def _stale(folder: Path) -> list[str]:
    """Tables that no study has, that are damaged, or whose runs the study no longer has."""
    wrong = []
    for path in sorted(folder.glob("*.parquet")):
        study = STUDIES.get(path.stem)
        if study is None:
            wrong.append(f"{path}: there is no study of that name")
            continue
        try:
            found = read_table(path, study)
            said = what_is_wrong(study, found.result.tier, found.result.table)
        except InputError as error:
            said = str(error)
        if said:
            wrong.append(said if str(path) in said else f"{path}: {said}")
    return wrong
