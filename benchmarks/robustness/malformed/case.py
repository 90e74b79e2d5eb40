"""A case of malformed input: a command with its files, and what running it comes to."""

import contextlib
import io
import os
import signal
import socket
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from headwise.cli import main as headwise

LONGEST = 60  # seconds of the processor that any answer may take
LONGEST_WAIT = 600  # seconds by the clock: for what waits, and on a busy machine
CODES = {0: "answer", 1: "no", 2: "sentence", 3: "refused", 4: "out of time", 5: "work lost"}
OUTCOMES = (*CODES.values(), "traceback", "too slow", "other code", "nonsense", "ran code")
DEFECTS = OUTCOMES[6:]
ANSWERS = ("answer", "refused", "out of time")  # the input was taken for what it is not
HERE = "{folder}"


class TooSlow(BaseException):
    """Raised in the midst of a command; none of its handlers must take it for an error."""


@dataclass(frozen=True)
class Case:
    """A command with the files that it names; `{folder}` is where they lie.

    Beside them lie `pipe`, which nobody writes to, `socket`, and `around`, a link to itself.
    `settings` are variables of the environment.
    """

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def run(self) -> tuple[str, str]:
        """The outcome, and what was printed."""
        with (
            tempfile.TemporaryDirectory() as folder,
            _inside(folder),
            _set({name: value.replace(HERE, folder) for name, value in self.settings.items()}),
            _limited(),
            contextlib.closing(socket.socket(socket.AF_UNIX)) as listening,
        ):
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            for name, place in self.links.items():
                Path(folder, name).symlink_to(place)
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)
            listening.bind("socket")
            Path(folder, "around").symlink_to("around")
            arguments = [argument.replace(HERE, folder) for argument in self.arguments]
            output = io.StringIO()
            try:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    headwise(arguments)
                code: Any = 0
            except SystemExit as end:
                code = end.code or 0
            except TooSlow:
                return "too slow", traceback.format_exc()
            except BaseException:
                return "traceback", traceback.format_exc()
            if not pipe.is_fifo():
                return "other code", "a file took the place of a pipe"
            if any(Path(folder, name).exists() for name in ("unpickled", "executed")):
                return "ran code", output.getvalue()
        said = output.getvalue()
        if "Traceback" in said:
            return "traceback", said
        return CODES.get(code, "other code"), said


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _set(settings: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise TooSlow(f"more than {LONGEST} seconds of work, or {LONGEST_WAIT} of waiting")

    limits = {
        signal.ITIMER_PROF: (signal.SIGPROF, LONGEST),
        signal.ITIMER_REAL: (signal.SIGALRM, LONGEST_WAIT),
    }
    before = {number: signal.signal(number, late) for number, _ in limits.values()}
    for timer, (_, seconds) in limits.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class InputClass:
    """A kind of input, and how to draw one."""

    name: str
    cases: SearchStrategy[Case]
    unusable: bool = False
    """No case can be used: an answer, or none for want of evidence or time, is a defect.

    "No" is right where a command is asked whether its input is sound.
    """


PLAN = "plan --layers 1 --width 8 --length 4 --budget 999 --seconds 0.01"
PROBE = "--seconds 0.5 --jobs 1"
OUT = f"--out {HERE}/out"


def on_file(name: str, content: SearchStrategy[bytes], *commands: str) -> SearchStrategy[Case]:
    """One of the commands on the file."""
    return st.builds(
        lambda command, bytes_: Case(command.split(), {name: bytes_}),
        st.sampled_from(commands),
        content,
    )
