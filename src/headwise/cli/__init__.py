"""The command line: `headwise`. One file a command; commands import what they need when run."""

from shutil import get_terminal_size
from typing import Annotated, Any

import typer
import typer.core

from headwise import __version__
from headwise.cli import (
    bound,
    build,
    compress,
    convert,
    inspect,
    plan,
    probe,
    report,
    study,
)
from headwise.cli.ending import run_to_the_end
from headwise.cli.twins import TWINS

_ROOMY = 80  # columns; in fewer, the help's boxes would cut the names of options
_BESIDE = 14  # columns for a name beside its help there; a longer one has a line of its own

app = typer.Typer(
    name="headwise",
    no_args_is_help=True,
    rich_markup_mode=None if get_terminal_size().columns < _ROOMY else "markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("probe")(probe.probe)
app.command("plan")(plan.plan)
app.command("inspect")(inspect.inspect)
app.command("compress", cls=compress.WithUsualSteps)(compress.compress)
app.command("report")(report.report)
app.command("probe-eval")(probe.probe_eval)
app.add_typer(study.app, name="study")
app.add_typer(report.evidence, name="evidence")
app.add_typer(bound.app, name="bound")
app.add_typer(build.app, name="build")
app.add_typer(convert.app, name="convert")


def _name_twins(commands: typer.Typer, path: str = "") -> None:
    """Each command's help ends with what the command is called in Python."""
    for command in commands.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        twin = TWINS.get(f"{path}{name}")
        command.epilog = f"In Python: `{twin.called}`" if twin else None
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _name_twins(group.typer_instance, f"{path}{group.name} ")


_name_twins(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"headwise {__version__}")
        raise typer.Exit


@app.callback()
def headwise(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    """How many attention heads does a task, or a model, need; how wide; and in which layers?"""


def _fit_help(columns: int) -> None:
    """Help without boxes is wrapped at 50 columns or more, and its first column may take 30."""
    context = typer.core.TyperCommand.context_class
    usual: Any = context.formatter_class

    class Narrow(usual):  # type: ignore[misc]
        def __init__(self, **given: Any) -> None:
            super().__init__(**given | {"width": columns})

        def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
            super().write_dl(rows, min(col_max, _BESIDE), col_spacing)

    context.formatter_class = Narrow


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Bad input: one sentence on standard error, exit code 2."""
    if (columns := get_terminal_size().columns) < _ROOMY:
        _fit_help(columns)
    run_to_the_end(lambda: app(arguments, standalone_mode=True))
