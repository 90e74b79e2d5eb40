"""How long work tells how far it is, and learns when it must stop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

OnProgress = Callable[[float, str], None]
"""Called with the finished fraction, 0 to 1, and what is being done now, in a few words."""


def quiet(fraction: float, doing: str) -> None:
    """Nobody listens."""


def part_of(whole: OnProgress, first: float, last: float, doing: str = "") -> OnProgress:
    """Progress of a part of some work, told to the whole: 0 becomes `first`, 1 becomes `last`.

    `doing` says what the part is, where the part itself does not.
    """

    def report(fraction: float, what: str = "") -> None:
        whole(first + fraction * (last - first), what or doing)

    return report


@dataclass(frozen=True)
class Deadline:
    """A moment of this process's monotonic clock: work looks at it and stops in good order."""

    at: float = inf

    @staticmethod
    def after(seconds: float) -> "Deadline":
        """The moment so many seconds from now."""
        return Deadline(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until it, not negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Is it too late to begin anything?"""
        return self.left == 0.0
