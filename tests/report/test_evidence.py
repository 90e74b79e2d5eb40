"""Evidence: pages say what the tables say, and tables are those of today's studies."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from headwise.cli import main
from headwise.core.errors import InputError
from headwise.core.spec import canonical_json
from headwise.lab.check import made_up_table
from headwise.lab.result import StudyResult
from headwise.lab.seeds import SeedGroups
from headwise.lab.steadiness import halves
from headwise.lab.store import Store
from headwise.lab.work import Record
from headwise.report.evidence import (
    add_evidence,
    check_evidence,
    compare_evidence,
    write_evidence,
)
from headwise.report.evidence.tables import LARGEST, read_table, write_table
from headwise.studies import STUDIES
from house import ROOT

STUDY = STUDIES["rank-in-context"]


def made_up_result() -> StudyResult:
    """The whole standard tier of a study with numbers at random."""
    parts = STUDY.runs("standard")
    keys = [run.key for runs in parts.values() for run in runs]
    table = made_up_table(parts).assign(key=keys)
    return StudyResult(STUDY, "standard", table, len(keys))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of evidence with one table and its pages."""
    write_table(made_up_result(), {"headwise": "0"}, tmp_path / f"{STUDY.name}.parquet")
    write_evidence(tmp_path, tmp_path / "evidence.md")
    return tmp_path


def test_the_shipped_pages_are_what_the_shipped_tables_say() -> None:
    assert check_evidence(ROOT / "evidence", ROOT / "docs" / "evidence.md") == []
    for path in (ROOT / "evidence").glob("*.parquet"):
        assert path.stat().st_size <= LARGEST


def test_no_shipped_verdict_is_contradicted_by_half_of_its_seeds() -> None:
    words = (ROOT / "docs" / "evidence.md").read_text()
    decided = 0
    for path in (ROOT / "evidence").glob("*.parquet"):
        result = read_table(path, STUDIES[path.stem]).result
        study, ratio = result.study, result.error.compared_by == "ratio"
        seeds = SeedGroups.of(result.table, study.settings, study.paired, ratio)
        for claim in study.claims:
            for status, opposite in (("holds", "does not hold"), ("does not hold", "holds")):
                if f"- **{status}**: {claim.statement}" in words:
                    decided += 1
                    assert opposite not in halves(claim, seeds), claim.statement
    assert decided >= 16


def test_pages_made_from_tables_pass_and_say_what_was_not_run(folder: Path) -> None:
    assert check_evidence(folder, folder / "evidence.md") == []
    page, words = (folder / "index.html").read_text(), (folder / "evidence.md").read_text()
    result = read_table(folder / f"{STUDY.name}.parquet", STUDY).result
    for text in (page, words):
        for claim, verdict in result.verdicts.items():
            assert claim.statement in text
            assert verdict.status in text
        said = re.sub(r"</?span[^>]*>", "", text)  # the words of a command stand in elements
        assert "headwise study run head-count --tier standard" in said
    assert "not run yet" in page
    assert "<script src" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", ["index.html", "evidence.md"])
def test_a_page_that_was_changed_is_found_out(folder: Path, name: str) -> None:
    path = folder / name
    path.write_text(path.read_text().replace("claims hold", "claims are true", 1))
    (wrong,) = check_evidence(folder, folder / "evidence.md")
    assert name in wrong
    assert "headwise evidence page" in wrong


def test_a_table_that_was_changed_is_found_out(folder: Path) -> None:
    result = made_up_result()
    changed = result.table.assign(error=result.table["error"] * 0.5)
    changed.loc[0, "error"] = 1.0
    path = folder / f"{STUDY.name}.parquet"
    write_table(StudyResult(STUDY, "standard", changed, 1), {"headwise": "0"}, path)
    assert check_evidence(folder, folder / "evidence.md")


def test_a_table_of_another_specification_is_refused(folder: Path) -> None:
    path = folder / f"{STUDY.name}.parquet"
    rows = read_table(path, STUDY).result.table
    rows.loc[0, "key"] = "0" * 64
    _write_unchecked(rows, path)
    (wrong,) = check_evidence(folder, folder / "evidence.md")
    assert "no longer has" in wrong
    with pytest.raises(InputError, match="no longer has"):
        write_evidence(folder)


def test_no_page_is_made_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for verb in (write_evidence, check_evidence):
        with pytest.raises(InputError, match="there is no folder"):
            verb(tmp_path / "none", tmp_path / "a.md")
    assert list(tmp_path.iterdir()) == []


def test_half_a_tier_is_no_evidence(tmp_path: Path) -> None:
    result = made_up_result()
    half = StudyResult(STUDY, "standard", result.table.iloc[::2], result.planned)
    with pytest.raises(InputError, match="are missing; run: headwise study run"):
        write_table(half, {}, tmp_path / "half.parquet")


def test_foreign_and_damaged_tables_get_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "head-count.parquet").write_bytes((folder / f"{STUDY.name}.parquet").read_bytes())
    (folder / "rank-depth.parquet").write_bytes(b"PAR1 and then nothing")
    (folder / "nonsense.parquet").write_bytes(b"")
    said = "\n".join(check_evidence(folder))
    assert "not of head-count" in said
    assert "rank-depth.parquet is no table of evidence" in said
    assert "there is no study of that name" in said
    assert said.count("head-count.parquet") == 1
    for name, value in (("COLUMNS", "40"), ("FORCE_COLOR", "1"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)  # a terminal of 40 columns without colours
    with pytest.raises(SystemExit) as end:
        main(["evidence", "check", "--folder", str(folder)])
    assert end.value.code == 1
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    assert "no study of that name" in " ".join(told.split())
    assert all(len(line) <= 40 or " " not in line for line in told.splitlines())


def test_a_store_without_the_tier_is_refused(tmp_path: Path) -> None:
    for verb in (add_evidence, compare_evidence):
        with pytest.raises(InputError):
            verb(tmp_path / "nothing.db", folder=tmp_path)


@pytest.mark.parametrize(
    ("power", "outcome", "code"), [(1.0, "the same", 0), (-1.0, "contradicted", 1)]
)
def test_a_run_of_ones_own_is_compared_claim_by_claim(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    power: float,
    outcome: str,
    code: int,
) -> None:
    shipped = add_evidence(_store_of(tmp_path / "one.db", 1.0), folder=tmp_path)
    own = _store_of(tmp_path / "other.db", power)
    found = compare_evidence(own, folder=tmp_path)
    assert {each.outcome for each in found.claims} == {outcome}
    assert found.agrees == (code == 0)
    assert f"{len(STUDY.claims)} {outcome}" in str(found)
    with pytest.raises(SystemExit) as end:
        main(["evidence", "compare", str(own), "--folder", str(tmp_path), "--json"])
    assert end.value.code == code
    assert json.loads(capsys.readouterr().out)[0]["outcome"] == outcome
    shipped.unlink()
    with pytest.raises(InputError, match="has no table of"):
        compare_evidence(own, folder=tmp_path)


def test_half_a_run_is_not_compared(tmp_path: Path) -> None:
    add_evidence(_store_of(tmp_path / "one.db", 1.0), folder=tmp_path)
    half = _store_of(tmp_path / "half.db", 1.0, every=2)
    with pytest.raises(InputError, match=r"half\.db: .* are missing"):
        compare_evidence(half, folder=tmp_path)


def _store_of(path: Path, power: float, every: int = 1) -> Path:
    """A run of the whole tier, or of a part of it, whose error is a power of the heads."""
    parts = STUDY.runs("standard")
    with Store(path, write=True) as store:
        plan = {part: [run.key for run in runs] for part, runs in parts.items()}
        store.plan(STUDY.owner, "standard", plan)
        store.add(
            Record(
                key=run.key,
                specification=canonical_json(run),
                seed=run.seed,
                status="done",
                result={
                    "error": run.net.layers[0].heads ** power * (1 + run.seed / 100),
                    "unit": "",
                    "error_last": 1.0,
                    "best_step": 1,
                    "engine": "",
                },
                versions={"headwise": "0"},
                wall_seconds=1.0,
                cpu_seconds=1.0,
                cpu="some processor",
                finished="2026-01-01T00:00:00+00:00",
            )
            for runs in parts.values()
            for run in runs[::every]
        )
    return path


def _write_unchecked(rows: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = pq.read_schema(path).metadata[b"headwise"]
    table = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(table.replace_schema_metadata({b"headwise": about}), path)
