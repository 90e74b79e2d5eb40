"""A progress bar with the time left; plain lines where there is no terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from headwise.lab.conduct import StudyState

_LINE_SECONDS = 30


@contextmanager
def study_progress(console: Console) -> Iterator[Callable[["StudyState"], None]]:
    """Yields the function to call with each new state of a study."""
    started, spoken = time.monotonic(), time.monotonic()

    def left(state: "StudyState") -> str:
        if state.finished_cost <= 0:
            return "estimating"
        elapsed = time.monotonic() - started
        seconds = elapsed * (state.total_cost - state.finished_cost) / state.finished_cost
        return str(timedelta(seconds=round(seconds)))

    with Progress(
        TextColumn("{task.fields[runs]} runs"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left {task.fields[left]}"),
        console=console,
    ) as bar:
        task = bar.add_task("study", runs="", left="estimating")

        def on_state(state: "StudyState") -> None:
            nonlocal spoken
            runs = f"{state.finished_runs}/{state.total_runs}"
            total = state.total_cost or 1.0
            done = state.finished_cost if state.total_cost else 1.0
            bar.update(task, completed=done, total=total, runs=runs, left=left(state))
            if not console.is_terminal and time.monotonic() - spoken > _LINE_SECONDS:
                spoken = time.monotonic()
                console.print(f"{runs} runs, left {left(state)}")

        yield on_state


@contextmanager
def fraction_progress(what: str) -> Iterator[Callable[[float], None]]:
    """Yields the function to call with the finished fraction of some work."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda fraction: bar.update(task, completed=fraction)


@contextmanager
def described_progress() -> Iterator[Callable[[float, str], None]]:
    """Yields the function to call with the finished fraction of some work, and what it is now."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda fraction, doing: bar.update(task, completed=fraction, description=doing)
