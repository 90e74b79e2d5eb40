"""The command line as a user meets it."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import run

from headwise import __version__
from headwise.lab.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
STUDY = "tiny_study:TINY"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished tiny study with its report beside it."""
    folder = tmp_path_factory.mktemp("study")
    code = run("study", "run", STUDY, "--store", str(folder / "a.db"), "--report", str(folder))
    assert code == 0
    return folder / "a.db"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"headwise {__version__}\n"
    for arguments in (["--help"], ["study", "--help"], ["study", "run", "--help"]):
        assert run(*arguments) == 0
        assert "Usage" in capsys.readouterr().out


def test_list_and_show_describe_every_tier_with_its_price(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("study", "list", "--json") == 0
    names = [study["name"] for study in json.loads(capsys.readouterr().out)]
    assert "head-count" in names
    for name in names:
        assert run("study", "show", name, "--json") == 0
        tiers = json.loads(capsys.readouterr().out)["tiers"]
        assert list(tiers) == ["quick", "standard", "full"]
        runs = [tier["runs"] for tier in tiers.values()]  # as many may be longer or larger
        assert runs == sorted(runs)
        assert all("CPU" in tier["price"] for tier in tiers.values())


def test_the_report_is_one_page_without_requests(store: Path) -> None:
    page = (store.parent / "report.html").read_text()
    for outside in ('src="http', "src='http", '<link rel="stylesheet"', "@import"):
        assert outside not in page
    assert "vegaEmbed" in page
    assert "intrinsic dimension 2" in page
    for name in ("tiny-transition", "tiny-reversal"):
        assert (store.parent / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (store.parent / f"{name}.svg").read_text()[:500]
        points = pd.read_csv(store.parent / f"{name}.csv")
        assert len(points[points["source"] == "this run"]) == 9


def test_the_report_can_be_rebuilt_from_the_store_alone(store: Path, tmp_path: Path) -> None:
    assert run("report", str(store), "--out", str(tmp_path)) == 0
    pages = [(folder / "report.html").read_text() for folder in (tmp_path, store.parent)]
    # The writer of PDFs numbers its objects in another order each time.
    again, page = (re.sub(r"application/pdf;base64,[^\"']+", "", each) for each in pages)
    assert again == page


def test_status(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("study", "status", "--store", str(store), "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"study": STUDY, "tier": "quick", "finished": 18, "planned": 18, "failed": 0}


def test_every_export_format_holds_the_same_rows(
    store: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    readers = {
        "csv": pd.read_csv,
        "json": lambda data: pd.read_json(data, orient="records"),
        "parquet": pd.read_parquet,
    }
    frames = {}
    for format, read in readers.items():
        arguments = ["study", "export", STUDY, "--store", str(store), "--format", format]
        assert run(*arguments, "--out", str(tmp_path / format)) == 0
        frames[format] = read(tmp_path / format)
        capfdbinary.readouterr()
        assert run(*arguments) == 0
        pd.testing.assert_frame_equal(
            read(io.BytesIO(capfdbinary.readouterr().out)), frames[format]
        )
    wanted = {"heads", "head_dim", "length", "intrinsic_dim", "width", "layers", "seed", "error"}
    for frame in frames.values():
        assert wanted <= set(frame.columns)
        assert len(frame) == 18
        assert frame["error"].tolist() == pytest.approx(frames["csv"]["error"].tolist(), rel=1e-12)


BAD = [
    (["study", "run", "no-such"], "there is no study 'no-such'"),
    (["study", "run", "head-count", "--tier", "huge"], "has no tier 'huge'"),
    (["study", "run", "head-count", "--jobs", "0"], "jobs is 0"),
    (["study", "run", "head-count", "--store", "/proc/no/a.db"], "cannot write a store"),
    (["study", "run", "no.module:X"], "no study at"),
    (["study", "run", "json:dumps"], "is not a headwise"),
    (["study", "show", "no-such"], "there is no study"),
    (["study", "status", "--store", "/no/such.db"], "there is no store"),
    (["study", "export", "head-count", "--store", "/no/such.db"], "there is no store"),
    (["report", "/no/such.db"], "there is no store"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD)
def test_bad_input_gets_a_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    errors = capsys.readouterr().err
    assert sentence in errors
    assert "Traceback" not in errors


def test_a_store_without_the_study_gets_a_sentence(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("study", "export", "head-count", "--store", str(store)) == 2
    assert "holds no finished run" in capsys.readouterr().err
    Store(tmp_path / "empty.db", write=True).close()
    assert run("report", str(tmp_path / "empty.db")) == 2
    assert "holds no such study" in capsys.readouterr().err


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, headwise.cli; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_help_cuts_no_name_of_an_option(columns: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "from headwise.cli import main; main(['probe-eval', '--help'])"],
        env={**os.environ, "COLUMNS": str(columns)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "…" not in told
    assert {"--no-function", "--gpus-per-job"} <= set(told.split())
    assert all(len(line) <= columns for line in told.splitlines())
