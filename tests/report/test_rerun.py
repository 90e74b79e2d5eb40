"""Runs of a shipped table done again: equal where they must be, found out where they are not."""

import json
from pathlib import Path

import pandas as pd
import pytest

from headwise.cli import main
from headwise.core.errors import InputError
from headwise.lab.result import StudyResult
from headwise.lab.work import cpu_kind, versions
from headwise.report.evidence import rerun_evidence
from headwise.report.evidence.tables import read_table, write_table
from headwise.studies import STUDIES
from house import ROOT

STUDY = STUDIES["rank-random-features"]
SHIPPED = ROOT / "evidence"
MINUTES = 0.001  # runs of built layers, a few milliseconds each


def table_of(rows: pd.DataFrame, folder: Path, made_with: dict[str, str]) -> Path:
    """A folder of evidence with these rows as the study's table."""
    result = StudyResult(STUDY, "standard", rows.assign(specification=""), len(rows))
    write_table(result, made_with, folder / f"{STUDY.name}.parquet")
    return folder


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped table as if it had been made on this machine."""
    found = read_table(SHIPPED / f"{STUDY.name}.parquet", STUDY).result.table
    again = rerun_evidence(STUDY.name, MINUTES, folder=SHIPPED, jobs=1)
    assert again.factor < 1.01  # whatever the processor: these are built, not trained
    own = dict(zip(again.rows.index, again.rows["error_again"], strict=True))
    made = found["key"].isin(own)
    found.loc[made, "error"] = found.loc[made, "error_last"] = found["key"].map(own)[made]
    folder = tmp_path_factory.mktemp("evidence")
    return table_of(found.assign(cpu=cpu_kind()), folder, versions())


def test_what_was_made_here_comes_out_again_to_the_last_bit(here: Path) -> None:
    again = rerun_evidence(STUDY.name, MINUTES, folder=here, jobs=1)
    assert again.like
    assert again.agrees
    assert again.factor == 1.0
    assert again.to_pandas()["equal"].all()
    assert "all are equal to the last bit" in str(again)
    other = rerun_evidence(STUDY.name, MINUTES, seed=1, folder=here, jobs=1)
    assert set(other.rows.index) != set(again.rows.index)


def test_a_number_that_was_touched_is_found_out(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read_table(here / f"{STUDY.name}.parquet", STUDY).result.table
    table_of(rows.assign(error=rows["error"] * (1 + 1e-12)), tmp_path, versions())
    with pytest.raises(SystemExit) as end:
        main([
            "evidence", "rerun", STUDY.name, "--minutes", str(MINUTES), "--folder", str(tmp_path),
            "--jobs", "1", "--json",
        ])  # fmt: skip
    assert end.value.code == 1
    assert not any(row["equal"] for row in json.loads(capsys.readouterr().out))


def test_another_processor_may_give_other_bits(here: Path, tmp_path: Path) -> None:
    rows = read_table(here / f"{STUDY.name}.parquet", STUDY).result.table
    changed = rows.assign(error=rows["error"] * 1.5, cpu="another one")
    again = rerun_evidence(STUDY.name, MINUTES, folder=table_of(changed, tmp_path, versions()))
    assert again.agrees
    assert again.factor == pytest.approx(1.5)
    assert "0 are equal to the last bit, others up to 1.5 times apart" in str(again)


def test_what_cannot_be_done_again_gets_a_sentence(here: Path) -> None:
    with pytest.raises(InputError, match="minutes is 0; it is above 0"):
        rerun_evidence(STUDY.name, 0, folder=here)
    with pytest.raises(InputError, match="the seed is -1"):
        rerun_evidence(STUDY.name, seed=-1, folder=here)
    with pytest.raises(InputError, match="has no table of head-count"):
        rerun_evidence("head-count", folder=here)
    with pytest.raises(InputError, match="give what it was run on with --data"):
        rerun_evidence("text-ranking", folder=SHIPPED)
    with pytest.raises(InputError, match="nosuch"):
        rerun_evidence("nosuch", folder=here)
