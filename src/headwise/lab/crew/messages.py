"""Jobs as a crew takes them, and what it says of them."""

from dataclasses import dataclass
from typing import Any

from headwise.core.errors import WorkLost


class WorkerDied(WorkLost):
    """A process ended, or its machine did, without an answer."""


class JobError(WorkLost):
    """The code of a job raised an error; the message names it."""


@dataclass(frozen=True)
class Job:
    """Work that one process does in one go.

    `work` is 'module:function', called with the `arguments`, where to report progress (an
    `OnProgress`) and a folder for checkpoints (or None); what it returns is the job's result. Jobs
    of one `label` are expected to take time in proportion to their `cost`.
    """

    work: str
    arguments: tuple[Any, ...]
    cost: float = 1.0
    label: str = ""


@dataclass(frozen=True)
class Progress:
    """Job number `job` has finished this fraction of its work, in so many seconds."""

    job: int
    fraction: float
    seconds: float


@dataclass(frozen=True)
class Finished:
    """Job number `job` is done, in so many seconds."""

    job: int
    result: Any
    seconds: float


@dataclass(frozen=True)
class Failed:
    """Job number `job` was tried as often as it may be; this is the last error."""

    job: int
    error: Exception
    tries: int


@dataclass(frozen=True)
class Pulse:
    """Some time has passed: a moment to write down results and to look at the clock."""

    nodes: int
    slots: int
    """Jobs that can run at once, on all nodes."""


Message = Progress | Finished | Failed | Pulse
