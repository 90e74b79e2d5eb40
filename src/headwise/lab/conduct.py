"""Conducting a study: plan it, run what the store does not have yet, keep every result."""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from headwise.core.clock import Deadline
from headwise.lab.crew.local import Finished, run_jobs
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.work import Record, cost, jobs


@dataclass(frozen=True)
class StudyState:
    """How far a study is; costs are relative."""

    finished_runs: int
    total_runs: int
    finished_cost: float
    total_cost: float

    @property
    def complete(self) -> bool:
        """Is every run in the store?"""
        return self.finished_runs == self.total_runs


def conduct(
    store: Store,
    study: str,
    tier: str,
    parts: dict[str, list[Run]],
    workers: int,
    on_state: Callable[[StudyState], None],
    *,
    deadline: Deadline = Deadline(),  # noqa: B008  (a value)
) -> StudyState:
    """Bring the store to hold every run of the parts. What it holds already is not run again.

    Beside the store lies a folder with checkpoints of long runs while they are not finished.
    """
    runs = {run.key: run for part in parts.values() for run in part}
    store.plan(study, tier, {name: [run.key for run in part] for name, part in parts.items()})
    known = store.keys()
    missing = [run for key, run in runs.items() if key not in known]
    todo = jobs(missing)
    costs = [cost(job) for job in todo]
    total_cost = sum(costs)
    fractions = [0.0] * len(todo)
    finished = len(runs) - len(missing)

    def state() -> StudyState:
        done = sum(each * share for each, share in zip(costs, fractions, strict=True))
        return StudyState(finished, len(runs), done, total_cost)

    on_state(state())
    if not missing or deadline.passed:
        return state()
    unfinished = Path(f"{store.path}.unfinished")
    with closing(
        run_jobs(todo, workers, unfinished)
    ) as messages:  # whatever happens, no worker is left behind
        for message in messages:
            if isinstance(message, Finished):
                store.add(message.records)
                _discard(unfinished, message.records)
                finished += len(message.records)
                fractions[message.job] = 1.0
            else:
                fractions[message.job] = message.fraction
            on_state(state())
            if deadline.left <= 0:
                break
    return state()


def _discard(unfinished: Path, records: list[Record]) -> None:
    """Remove the checkpoints of runs that the store now holds, and the folder with the last."""
    for record in records:
        (unfinished / f"{record.key}.safetensors").unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty
        unfinished.rmdir()
