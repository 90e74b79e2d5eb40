"""Options that typer does not read by itself."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.core.errors import InputError, require

if TYPE_CHECKING:
    from headwise.tasks import Retrieval

TrustOption = Annotated[
    list[str] | None,
    typer.Option(help="A module that may be imported though only a file names it; repeatable."),
]


def whole_numbers(text: str) -> list[int]:
    """'16,32' as [16, 32]."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{text!r} is not a list of whole numbers such as 16,32,64") from None


def chosen_task(
    preset: str, length: int | None, file: Path | None, trusted: list[str] | None = None
) -> "Retrieval":
    """The preset at this length, or the task that a file of JSON specifies.

    Functions that the file names are imported only from trusted modules.
    """
    from headwise.core.files import read_spec
    from headwise.core.trust import look_here, trust
    from headwise.tasks import PRESETS, Retrieval

    if file is None:
        require(preset in PRESETS, f"no preset {preset!r}; there are {', '.join(PRESETS)}")
        require(length is not None, "give the --length of the sequences")
        assert length is not None
        return PRESETS[preset](length)
    require(length is None, "a task's specification holds its length: leave --length out")
    trust(trusted or [])
    if trusted:
        look_here()
    task = read_spec(file, "a task")
    if isinstance(task, dict) and "task" in task:  # the specification of a built network
        task = task["task"]
    if not isinstance(task, Retrieval):
        raise InputError(f"{file} holds no retrieval task")
    return task
