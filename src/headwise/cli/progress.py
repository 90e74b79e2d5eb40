"""A progress bar with the time left; plain lines where there is no terminal.

Whatever takes long reports a finished fraction and what it is doing (`OnProgress`); all commands
show it through the one bar here. In a log file or a pipe a bar would be noise: there, work that
takes longer than ten seconds writes a line every ten seconds, whether it reports or not.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import wraps
from typing import ParamSpec, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from headwise.cli.ending import console
from headwise.core.progress import OnProgress

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
LINE_SECONDS = 10.0
UNKNOWN = "unknown"
_ROOM_FOR_ELAPSED = 72  # columns: on fewer, the time that has passed would be cut
_SETTLING_SECONDS = 1.0  # what is reported finished this early was finished before, and is no speed


@contextmanager
def progress_bar(what: str, shown_on: Console | None = None) -> Iterator[OnProgress]:
    """Yields the function to call with the finished fraction and what is being done now.

    `what` is shown until the work says better. The bar goes to standard error and is wiped when
    the work is done, so that what a command prints stands alone.
    """
    terminal = shown_on or console(stderr=True)
    left = _TimeLeft()
    elapsed = [TimeElapsedColumn()] if terminal.width >= _ROOM_FOR_ELAPSED else []
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        *elapsed,
        TextColumn("left {task.fields[left]}"),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=1.0, left=UNKNOWN)
        log = _Log(what, left, terminal)

        def on_progress(fraction: float, doing: str) -> None:
            log.fraction, log.doing = fraction, doing or what
            remaining = left.after(fraction)
            bar.update(task, completed=fraction, description=log.doing, left=remaining)
            log.speak()

        with log:
            yield on_progress


def says_it_works(command: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """A command that does not report how far it is: a line every ten seconds says that it works."""

    @wraps(command)
    def working(*given: Given.args, **named: Given.kwargs) -> Returned:
        shown_on = console(stderr=True)
        what = command.__name__.replace("_", " ")
        with nullcontext() if shown_on.is_terminal else _Beats(what, shown_on):
            return command(*given, **named)

    return working


class _Beats:
    """Lines for a log file while nothing is known but the time."""

    def __init__(self, what: str, shown_on: Console) -> None:
        self._what, self._console, self._over = what, shown_on, threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(LINE_SECONDS):
            line = f"{self._what}: at work for {timedelta(seconds=round(time.monotonic() - begun))}"
            with suppress(OSError):
                self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def __exit__(self, *error: object) -> None:
        self._over.set()


class _Log:
    """Lines for a log file: one every ten seconds, even while the work itself says nothing."""

    def __init__(self, what: str, left: "_TimeLeft", console: Console) -> None:
        self.fraction, self.doing, self._finishing = 0.0, what, False
        self._left, self._console = left, console
        self._spoken, self._over = time.monotonic(), threading.Event()
        self._one_at_a_time = threading.Lock()

    def speak(self) -> None:
        """Write a line, if the last was ten seconds ago and nobody sees a bar."""
        with self._one_at_a_time:
            now = time.monotonic()
            if self._console.is_terminal or now - self._spoken < LINE_SECONDS:
                return
            self._spoken = now
            line = f"{self.doing}: {100 * self.fraction:.0f} %, time left "
            line += self._left.after(self.fraction)
            if self._finishing:  # what is left, a summary or a page, reports no progress
                line = f"{self.doing}: finishing"
            self._finishing = self.fraction >= 1
            with suppress(OSError):  # a log that cannot be written is no reason to lose the work
                self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> None:
        if not self._console.is_terminal:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._over.wait(LINE_SECONDS / 4):
            self.speak()

    def __exit__(self, *error: object) -> None:
        self._over.set()


class _TimeLeft:
    """Time left at the speed seen so far, measured from the first moments' fraction on."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._since, self._before = self._begun, 0.0

    def after(self, fraction: float) -> str:
        """In hours, minutes and seconds; 'unknown' while nothing is known."""
        if fraction >= 1:
            return str(timedelta())
        now = time.monotonic()
        if now - self._begun < _SETTLING_SECONDS:
            self._since, self._before = now, fraction
        finished = fraction - self._before
        if finished <= 0:
            return UNKNOWN
        seconds = (now - self._since) * (1 - fraction) / finished
        return str(timedelta(seconds=round(max(0.0, seconds))))
