"""The time of one probe: what is left of it, and how far its training is."""

import time
from dataclasses import dataclass, field

from headwise.core.progress import Deadline, OnProgress, quiet
from headwise.training.fused.scope import available


@dataclass
class Clock:
    """All trainings of a probe look at the same clock, and tell it the steps that they took."""

    seconds: float
    on_progress: OnProgress = quiet
    planned: int = 0
    taken: int = 0
    stopped: bool = False
    compiling: float = 0.0  # seconds that the first use of the kernel on a machine took
    started: float = field(default_factory=time.monotonic)

    @property
    def deadline(self) -> Deadline:
        """When the time is over."""
        return Deadline(self.started + self.seconds)

    @property
    def over(self) -> bool:
        """Nothing may begin any more: the time is over, or another training has failed."""
        return self.stopped or self.deadline.passed

    @property
    def elapsed(self) -> float:
        """Seconds since the probe began."""
        return time.monotonic() - self.started

    def compile(self) -> None:
        """Compile the training kernel now, where that was not done before, and note the time."""
        before = self.elapsed
        available()
        self.compiling = self.elapsed - before

    def took(self, steps: int) -> None:
        """So many more of the planned steps are done."""
        self.taken += steps
        self.on_progress(min(1.0, self.taken / max(self.planned, 1)), "training")
