"""The examples of docs/allocation.md run and print what the page says."""

import doctest
import re
from pathlib import Path

import pytest
import typer

from headwise.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "allocation.md"


def test_the_examples_on_the_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 20
    assert outcome.failed == 0


def test_the_commands_on_the_page_have_those_options() -> None:
    lines = re.findall(r"^    headwise (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) >= 6
    for line in lines:
        command, words = typer.main.get_command(app), line.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
