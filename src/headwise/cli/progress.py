"""A progress bar with the time left; plain lines where there is no terminal.

Whatever takes long reports a finished fraction and what it is doing (`OnProgress`); all commands
show it through the one bar here. In a log file or a pipe a bar would be noise: there, work that
takes longer than ten seconds writes a line every ten seconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from headwise.core.progress import OnProgress

LINE_SECONDS = 10.0
_SETTLING_SECONDS = 1.0  # what is reported finished this early was finished before, and is no speed


@contextmanager
def progress_bar(what: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Yields the function to call with the finished fraction and what is being done now.

    `what` is shown until the work says better. The bar goes to standard error and is wiped when
    the work is done, so that what a command prints stands alone.
    """
    console = console or Console(stderr=True)
    left = _TimeLeft()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left {task.fields[left]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=1.0, left="estimating")
        spoken = time.monotonic()

        def on_progress(fraction: float, doing: str) -> None:
            nonlocal spoken
            remaining = left.after(fraction)
            bar.update(task, completed=fraction, description=doing or what, left=remaining)
            now = time.monotonic()
            if not console.is_terminal and now - spoken >= LINE_SECONDS:
                spoken = now
                line = f"{doing or what}: {100 * fraction:.0f} %, time left {remaining}"
                console.print(line, highlight=False, markup=False, soft_wrap=True)

        yield on_progress


class _TimeLeft:
    """Time left at the speed seen so far, measured from the first moments' fraction on."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._since, self._before = self._begun, 0.0

    def after(self, fraction: float) -> str:
        """In hours, minutes and seconds; 'estimating' while nothing is known."""
        now = time.monotonic()
        if now - self._begun < _SETTLING_SECONDS:
            self._since, self._before = now, fraction
        finished = fraction - self._before
        if finished <= 0:
            return "estimating"
        seconds = (now - self._since) * (1 - fraction) / finished
        return str(timedelta(seconds=round(max(0.0, seconds))))
