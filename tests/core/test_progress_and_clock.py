"""Progress of parts adds up to that of the whole; a deadline is a value that passes."""

import time
from math import inf

import pytest

from headwise.core.progress import Deadline, part_of, quiet


def test_parts_report_to_the_whole() -> None:
    heard: list[tuple[float, str]] = []
    whole = lambda fraction, doing: heard.append((fraction, doing))  # noqa: E731
    first = part_of(whole, 0.0, 0.25, "reading")
    second = part_of(whole, 0.25, 1.0)
    first(0.0, "")
    first(1.0, "a file")
    second(0.5, "training")
    inner = part_of(second, 0.5, 1.0, "evaluating")  # a part of a part
    inner(1.0, "")
    assert heard == [(0.0, "reading"), (0.25, "a file"), (0.625, "training"), (1.0, "evaluating")]


def test_nobody_has_to_listen() -> None:
    quiet(0.5, "anything")
    part_of(quiet, 0.0, 1.0)(0.5, "anything")


def test_a_deadline_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    deadline = Deadline.after(5)
    assert (deadline.left, deadline.passed) == (5.0, False)
    now = 104.0
    assert (deadline.left, deadline.passed) == (1.0, False)
    now = 105.0
    assert (deadline.left, deadline.passed) == (0.0, True)
    now = 200.0
    assert (deadline.left, deadline.passed) == (0.0, True)


def test_without_a_deadline_there_is_always_time() -> None:
    assert (Deadline().left, Deadline().passed) == (inf, False)
