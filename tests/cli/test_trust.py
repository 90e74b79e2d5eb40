"""A store names a study of someone's module: shown as text, imported only if the user says so."""

import sqlite3
import sys
from pathlib import Path

import pytest
from command_line import run

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

from test_store_anywhere import whole_record

from headwise.lab.store import Store

MODULE = """
from dataclasses import replace
from pathlib import Path
from headwise.lab.study import Tier
from headwise.studies.head_count.synthetic import HEAD_COUNT
Path(__file__).with_name("trace").write_text("imported")
MINE = replace(HEAD_COUNT, name="mine", title="A study of mine", figures=(), claims=(),
               tiers={"quick": Tier("nothing", dict)})
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Finished runs of a study in a module that leaves a trace."""
    (tmp_path / "left_by_a_store.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "left_by_a_store", raising=False)
    monkeypatch.setattr("headwise.core.trust._trusted", set())
    records = [whole_record(seed) for seed in (0, 1)]
    with Store(tmp_path / "a.db", write=True) as opened:
        keys = [record.key for record in records]
        opened.plan("study/left_by_a_store:MINE", "quick", {"transition": keys})
        opened.add(records)
    return tmp_path / "a.db"


def test_a_report_shows_the_name_and_the_runs_and_imports_nothing(store: Path) -> None:
    assert run("report", str(store), "--out", "out") == 0
    page = (store.parent / "out" / "report.html").read_text()
    assert "left_by_a_store:MINE" in page
    assert "nothing is imported because a file says so" in page
    assert "A study of mine" not in page
    assert len((store.parent / "out" / "runs.csv").read_text().splitlines()) == 3
    assert run("study", "status", "--store", str(store)) == 0
    assert not (store.parent / "trace").exists()


@pytest.mark.parametrize(
    "choice", [("--trust", "left_by_a_store"), ("--study", "left_by_a_store:MINE")]
)
def test_with_the_users_word_the_study_itself_reports(choice: tuple[str, str], store: Path) -> None:
    assert run("report", str(store), "--out", "out", *choice) == 0
    assert "A study of mine" in (store.parent / "out" / "report.html").read_text()


def test_hostile_names_stay_text_in_a_terminal(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "[red]x</script><!--<script>alert(1)</script>:\x1b[2J"
    with sqlite3.connect(store) as database:
        database.execute("UPDATE planned SET owner = ?, part = ?", (f"study/{hostile}", hostile))
    database.close()
    assert run("study", "status", "--store", str(store)) == 0
    printed = capsys.readouterr().out
    assert "[red]x" in printed
    assert "\x1b" not in printed


def test_a_task_file_names_code_and_nothing_is_imported(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = store.parent / "task.json"
    task.write_text(
        '{"type": "Retrieval", "length": 4, "inputs": "uniform", "extrema": ["max"], "outer": '
        '{"type": "Sum"}, "features": {"type": "Function", "function": "left_by_a_store:MINE", '
        '"count": 1, "token_dim": 2, "lipschitz": 1}}'
    )
    assert run("build", "retrieval", "--task", str(task), "--error", "0.1") == 2
    assert "--trust left_by_a_store" in capsys.readouterr().err
    assert not (store.parent / "trace").exists()


def test_a_trusted_module_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a study's address: an installed command does not look there by itself."""
    (tmp_path / "maps_of_mine.py").write_text("def first(x): return x[..., :1]\n")
    (tmp_path / "task.json").write_text(
        '{"type": "Retrieval", "length": 4, "inputs": "uniform", "extrema": ["max"], "outer": '
        '{"type": "Sum"}, "features": {"type": "Function", "function": "maps_of_mine:first", '
        '"count": 1, "token_dim": 2, "lipschitz": 1}}'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr("headwise.core.trust._trusted", set())
    asked = ("build", "retrieval", "--task", "task.json", "--error", "0.1", "--seconds", "1")
    assert run(*asked, "--trust", "maps_of_mine") == 0
