"""What a crew says of the jobs it was given."""

from dataclasses import dataclass

from headwise.core.errors import WorkLost
from headwise.lab.work import Record


class WorkerDied(WorkLost):
    """A worker process ended without an answer."""


@dataclass(frozen=True)
class Progress:
    """Job number `job` has finished this fraction of its work."""

    job: int
    fraction: float


@dataclass(frozen=True)
class Finished:
    """Job number `job` is done."""

    job: int
    records: list[Record]


@dataclass(frozen=True)
class Failed:
    """The work cannot go on: input that cannot be used, or a worker that died."""

    error: Exception
