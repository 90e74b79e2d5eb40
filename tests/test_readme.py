"""What the README says is so."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from headwise.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_python_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}  # later blocks go on from earlier ones, as a reader does
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def commands(page: Path) -> list[str]:
    """The headwise commands that a page shows: in blocks, and in the prose in backticks."""
    text = page.read_text()
    blocks = re.findall(r"^    (headwise .*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return blocks + re.findall(r"`(headwise [a-z][^`]* --[^`]*)`", text)


def test_the_readme_shows_commands() -> None:
    assert len(commands(ROOT / "README.md")) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_headwise_command_exists_with_its_options(page: Path) -> None:
    root = typer.main.get_command(app)
    for line in commands(page):
        words = shlex.split(line)[1:]
        command = root
        while words and hasattr(command, "commands") and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        known = {
            option
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        used = {word for word in words if word.startswith("--")} - {"--help"}
        assert used <= known, f"{line}: {used - known}"
        assert not hasattr(command, "commands") or "--help" in words, f"{line}: no such command"


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_are_in_the_makefile(target: str) -> None:
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
