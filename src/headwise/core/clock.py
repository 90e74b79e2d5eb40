"""A deadline as a value: work looks at it and stops in good order, keeping what it has."""

import time
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Deadline:
    """A moment of this process's monotonic clock."""

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
