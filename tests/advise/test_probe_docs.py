"""The examples of docs/probe.md run and print what the page says."""

import doctest
import re
from pathlib import Path

import pytest
import typer

from headwise.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "probe.md"


def test_the_examples_on_the_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_the_commands_on_the_page_have_those_options() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^    headwise (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        name, *words = line.split()
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
