"""docs/studies.md: its study runs as the page says, and its examples are true."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
SOURCE = Path(__file__).parents[2] / "src"


def without_drawings(page: str) -> str:
    """The page but for its drawings, which the renderer does not repeat to the letter."""
    return re.sub(r"<svg.*?</svg>|image/svg\+xml[^\"']+", "", page, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder, with the page's module in it, and nothing that makes it importable."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "sharpness.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("sharpness", None)


def test_the_study_runs_from_its_folder_without_a_python_path(folder: Path) -> None:
    """As an installed command runs: the script's folder is on the path, the user's is not."""
    scripts = folder / "scripts"
    scripts.mkdir()
    launcher = scripts / "headwise_command.py"
    launcher.write_text("from headwise.cli import main\nif __name__ == '__main__':\n    main()\n")
    words = ["study", "run", "sharpness:SHARPNESS", "--report", "out", "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, str(launcher), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Scores of scale 64 miss" in done.stdout
    page = (folder / "out" / "report.html").read_text()
    assert "missed attention = 1 − the largest attention weight." in page
    drawn = pd.read_csv(next((folder / "out").glob("*-sharpness.csv")))
    assert len(drawn) == 8
    assert "scale of the scores" in next((folder / "out").glob("*-sharpness.svg")).read_text()
    words = ["report", "headwise.db", "--out", "again", "--trust", "sharpness"]
    subprocess.run(
        [sys.executable, str(launcher), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=True,
    )
    again = (folder / "again" / "report.html").read_text()
    assert without_drawings(again) == without_drawings(page)


def test_the_examples_on_the_page_are_true(folder: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert outcome.attempted > 9
    assert outcome.failed == 0
