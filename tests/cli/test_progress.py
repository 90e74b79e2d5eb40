"""The one progress bar: a bar on a terminal, a line now and then in a log."""

import io
import time

import pytest
from rich.console import Console

from headwise.cli import progress


class Clock:
    """Time that passes only when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def log() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=200)


def written(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()


def test_short_work_writes_nothing_to_a_log(clock: Clock) -> None:
    console = log()
    with progress.progress_bar("reading", console) as on_progress:
        for second in range(9):
            clock.now += 1
            on_progress(second / 9, "training")
    assert written(console) == []


def test_long_work_writes_a_line_every_ten_seconds_with_the_time_left(clock: Clock) -> None:
    console = log()
    with progress.progress_bar("reading", console) as on_progress:
        for second in range(1, 51):
            clock.now += 1
            on_progress(second / 100, "" if second < 15 else "training")
    lines = written(console)
    assert len(lines) == 5
    assert lines[0] == "reading: 10 %, time left 0:01:30"
    assert lines[-1] == "training: 50 %, time left 0:00:50"


def test_what_was_finished_before_does_not_count_as_speed(clock: Clock) -> None:
    console = log()
    with progress.progress_bar("going on", console) as on_progress:
        on_progress(0.5, "")  # found in a checkpoint
        clock.now += 10
        on_progress(0.6, "")
    assert written(console) == ["going on: 60 %, time left 0:00:40"]


def test_finished_work_is_said_to_be_at_its_end_once(clock: Clock) -> None:
    console = log()
    with progress.progress_bar("study", console) as on_progress:
        for _ in range(3):  # the table, the claims and the page report nothing themselves
            clock.now += 10
            on_progress(1.0, "8/8 runs")
    first = "8/8 runs: 100 %, time left 0:00:00"
    assert written(console) == [first, "8/8 runs: finishing", "8/8 runs: finishing"]


def test_what_is_being_done_stays_text() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress.progress_bar("reading", console) as on_progress:
        on_progress(0.5, "[red]a:b:c[/red] [/]")
    assert "[red]a:b:c[/red] [/]" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_terminal_gets_a_bar_that_is_wiped() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.progress_bar("reading", console) as on_progress:
        on_progress(0.5, "training 4 heads")
    text = console.file.getvalue()
    assert "training 4 heads" in text
    assert "left" in text
    assert text.endswith("\x1b[2K")  # the last line is erased


def test_a_command_that_cannot_say_how_far_it_is_says_that_it_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown_on = log()
    monkeypatch.setattr(progress, "console", lambda stderr: shown_on)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.001)

    @progress.says_it_works
    def make_pages(count: int) -> int:
        while not written(shown_on):
            time.sleep(0.001)
        return count

    assert make_pages(3) == 3
    assert written(shown_on)[0] == "make pages: at work for 0:00:00"


def test_a_log_that_cannot_be_written_does_not_end_the_work(clock: Clock) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    full = Console(file=Full(), force_terminal=False)
    with progress.progress_bar("reading", full) as on_progress:
        clock.now += 60
        on_progress(0.5, "training")


def test_a_narrow_bar_cuts_nothing() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=40)
    with progress.progress_bar("reading", console) as on_progress:
        on_progress(0.5, "45 runs finished")
    assert "…" not in console.file.getvalue()
