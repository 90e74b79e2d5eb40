"""Every command has a twin in Python with the same options and the same defaults."""

import ast
from collections.abc import Iterator
from inspect import Parameter, signature
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from headwise.cli import app
from headwise.cli.twins import TWINS
from house import MODULES, find, none, parameters

ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow
PRESENTATION = {"as_json", "out"}  # where a result goes, not what it is


def commands(group: object = None, path: str = "") -> Iterator[tuple[str, object]]:
    """All commands with their full names."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands())


def test_every_command_has_a_twin_and_every_twin_a_command() -> None:
    assert set(COMMANDS) == set(TWINS), "headwise.cli.twins lists the function behind each command"


@pytest.mark.parametrize("name", TWINS)
def test_a_command_and_its_twin_have_the_same_options(name: str) -> None:
    twin, command = TWINS[name], COMMANDS[name]
    accepted = set()
    for place in (twin.place, *twin.also):
        node = find(place)
        assert node is not None, f"headwise {name}: there is no {place}"
        assert isinstance(node, ast.FunctionDef), f"headwise {name}: {place} is not a function"
        accepted |= parameters(node)
    unknown = set(twin.words.values()) - accepted
    assert not unknown, f"headwise {name}: {twin.place} has no parameter {unknown}"
    options = {each.name for each in command.params} - PRESENTATION - twin.words.keys()
    only_here = sorted(options - accepted)
    assert not only_here, f"headwise {name} has options {only_here}; {twin.place} has not"


@pytest.mark.parametrize("name", TWINS)
def test_a_command_and_its_twin_have_the_same_defaults(name: str) -> None:
    twin = TWINS[name]
    functions = [resolve_name(place) for place in (twin.place, *twin.also)]
    known = [signature(function).parameters for function in functions]
    wrong = []
    for option in COMMANDS[name].params:
        own = [each[option.name].default for each in known if option.name in each]
        if own and option.name not in twin.words and not option.required:
            given = _as_typed(option.default)
            made_up = given == "" and own == [Parameter.empty]  # from other options
            if not made_up and given not in map(_as_typed, own):
                wrong.append(f"--{option.name}: {given or 'nothing'}, in Python {own[0]}")
    none(wrong, f"headwise {name} and {twin.called} differ in what is taken where nothing is said:")


def _as_typed(default: object) -> str:
    """A default as a person types it: a list with commas, nothing where there is none."""
    if isinstance(default, tuple | list):
        return ",".join(map(str, default))
    return "" if default is None else str(getattr(default, "value", default))


def test_commands_hold_no_arithmetic() -> None:
    """A command parses, calls and prints. `folder / "file"` is none; progress bars need some."""
    wrong = [
        f"{module.place(node.lineno)}: {ast.unparse(node)}"
        for module in MODULES.values()
        if module.room == "cli" and module.name != "headwise.cli.progress"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC)
        if not (isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant))
    ]
    none(wrong, "compute it in the function that the command calls:")


@pytest.mark.parametrize(
    ("typed", "steps"),
    [
        ("", 0),
        ("--finetune 30", 30),
        ("--finetune=7", 7),
        ("--finetune -5", -5),
        ("--finetune", 2500),
        ("--finetune --keep 0.5", 2500),
        ("--keep 0.5 --finetune", 2500),
    ],
)
def test_a_recovery_without_a_number_takes_the_usual_steps(typed: str, steps: int) -> None:
    command: Any = COMMANDS["compress"]
    assert command.make_context("compress", ["MODEL", *typed.split()]).params["finetune"] == steps


def test_compress_without_a_word_says_what_is_missing() -> None:
    command: Any = COMMANDS["compress"]
    with pytest.raises(Exception, match="model"):
        command.make_context("compress", [])
