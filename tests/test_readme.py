"""What the README says is so."""

import re
import shlex
from pathlib import Path

import pytest

from headwise.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}  # later blocks go on from earlier ones, as a reader does
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_every_headwise_command_exists_with_its_options() -> None:
    import typer

    root = typer.main.get_command(app)
    lines = re.findall(r"^    (headwise .*?)(?:\s+#.*)?$", README, re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line)[1:]
        command = root
        while words and hasattr(command, "commands") and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
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
