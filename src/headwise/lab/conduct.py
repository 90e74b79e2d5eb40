"""Conducting runs: plan them, do what the store does not have yet, keep every result.

Only this process writes. Records are committed together, twice a second at most, so that many
small runs do not wait for the disk; none is counted as finished before it is on it.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from headwise.core.errors import InputError, WorkLost
from headwise.core.progress import Deadline
from headwise.lab.crew import Failed, Finished, Job, Place, Progress, Pulse, run_jobs
from headwise.lab.crew.cargo import Cargo
from headwise.lab.crew.queue import TRIES
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.time_left import TimeLeft
from headwise.lab.work import Record, cost, failed_record, jobs

_COMMIT_SECONDS = 0.5


class RunsFailed(WorkLost):
    """Runs were tried as often as they may be, and failed; the message says why."""


@dataclass(frozen=True)
class StudyState:
    """How far a study is: `fraction` is the finished share of the time that is expected."""

    finished_runs: int
    failed_runs: int
    total_runs: int
    fraction: float
    nodes: int = 1
    steps_per_second: float = 0.0

    @property
    def complete(self) -> bool:
        """Is every run in the store?"""
        return self.finished_runs == self.total_runs

    def __str__(self) -> str:
        said = [f"{self.finished_runs} run{'' if self.finished_runs == 1 else 's'} finished"]
        said += [f"{self.failed_runs} failed"] if self.failed_runs else []
        said += [f"{self.nodes} nodes"] if self.nodes > 1 else []
        pace = self.steps_per_second
        said += [f"{pace:,.0f} steps/s"] if pace >= 1 else []
        return ", ".join(said)


def conduct(
    store: Store,
    owner: str,
    tier: str,
    parts: dict[str, list[Run]],
    place: Place,
    on_state: Callable[[StudyState], None],
    *,
    deadline: Deadline = Deadline(),  # noqa: B008  (a value)
    fail_fast: bool = False,
    in_order: bool = False,
) -> StudyState:
    """Bring the store to hold every run of the parts. What it holds already is not run again.

    `owner` is for whom the runs are done: "study/…" or, for trials of a plan, "plan". A run that
    fails is stored as failed, and the others go on; with `fail_fast` nothing is tried twice and
    the first failure is raised. Runs that failed before are tried again. The most expensive runs go
    first, which balances workers; `in_order` as they are given. After the deadline it
    stops; the state that it returns says whether that was before the end. Beside the store lies a
    folder with checkpoints of long runs while they are not finished.
    """
    runs = {run.key: run for part in parts.values() for run in part}
    store.plan(owner, tier, {name: [run.key for run in part] for name, part in parts.items()})
    known = store.keys()
    missing = [run for key, run in runs.items() if key not in known]
    work = _Work(store, jobs(missing, in_order), len(runs), len(runs) - len(missing), on_state)
    work.say()
    if not missing or deadline.left <= 0:
        return work.state()
    messages = run_jobs(
        work.jobs,
        place,
        cargo=Cargo.of(missing),
        unfinished=work.unfinished,
        tries=1 if fail_fast else TRIES,
    )
    # Whatever happens, no worker is left behind, and what is finished is kept.
    try:
        with closing(messages):
            for message in messages:
                work.hear(message)
                if isinstance(message, Failed) and fail_fast:
                    raise RunsFailed(f"a run failed: {message.error}") from message.error
                if deadline.passed:
                    break
    finally:
        work.commit()
        with suppress(OSError):  # not there, or it holds what a stopped run goes on from
            work.unfinished.rmdir()
    work.say()
    return work.state()


class _Work:
    """The jobs, what is known of them, and the records that are not on the disk yet."""

    def __init__(
        self,
        store: Store,
        groups: list[list[Run]],
        total: int,
        finished: int,
        on_state: Callable[[StudyState], None],
    ) -> None:
        self._store, self._groups, self._on_state = store, groups, on_state
        self._total, self._finished, self._failed = total, finished, 0
        self.jobs = [_job(group) for group in groups]
        self.unfinished = Path(f"{store.path}.unfinished")
        self._left = TimeLeft(self.jobs, [_steps(group) for group in groups])
        self._fresh: list[Record] = []
        self._committed = 0.0
        self._nodes = 1

    def hear(self, message: Progress | Finished | Failed | Pulse) -> None:
        """Take in what the crew says; the user is told of it when it is on the disk."""
        if isinstance(message, Failed):
            if isinstance(message.error, InputError):
                raise message.error
            group = self._groups[message.job]
            self._fresh += [failed_record(run, message.error, message.tries) for run in group]
            self._left.ended(message.job)
        elif isinstance(message, Finished):
            self._fresh += message.result
            self._left.finished(message.job, message.seconds)
        elif isinstance(message, Progress):
            self._left.progressed(message.job, message.fraction, message.seconds)
        else:
            self._nodes = message.nodes
            self._left.slots = message.slots
        now = time.monotonic()
        if now - self._committed >= _COMMIT_SECONDS:
            self._committed = now
            self.commit()
            self.say()

    def commit(self) -> None:
        """Write down what is not on the disk yet, and count it."""
        fresh, self._fresh = self._fresh, []
        done = [record for record in fresh if record.status != "failed"]
        if fresh:
            self._store.add(fresh)
            self._finished += len(done)
            self._failed += len(fresh) - len(done)
        _discard(self.unfinished, done)

    def say(self) -> None:
        """Tell the user."""
        self._on_state(self.state())

    def state(self) -> StudyState:
        """How far the work is."""
        complete = self._finished + self._failed == self._total
        return StudyState(
            self._finished,
            self._failed,
            self._total,
            1.0 if complete else self._left.fraction(),
            self._nodes,
            self._left.steps_per_second(),
        )


def _job(group: list[Run]) -> Job:
    return Job("headwise.lab.work:perform", (group,), cost(group), group[0].kind)


def _steps(group: list[Run]) -> int:
    """Training steps of a job, where it trains."""
    return len(group) * int(getattr(group[0].training, "steps", 0))


def _discard(unfinished: Path, records: Iterable[Record]) -> None:
    """Remove the checkpoints of runs that the store now holds.

    Their folder stays while there are workers: one of them may be about to write into it.
    """
    for record in records:
        (unfinished / f"{record.key}.safetensors").unlink(missing_ok=True)
