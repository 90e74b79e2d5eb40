"""Conducting runs: plan them, do what the store does not have yet, keep every result."""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from headwise.core.clock import Deadline
from headwise.lab.crew import Failed, Finished, run_jobs
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
    def fraction(self) -> float:
        """The finished share of the cost of what was missing at the start."""
        return self.finished_cost / self.total_cost if self.total_cost else 1.0

    @property
    def complete(self) -> bool:
        """Is every run in the store?"""
        return self.finished_runs == self.total_runs


def conduct(
    store: Store,
    owner: str,
    tier: str,
    parts: dict[str, list[Run]],
    workers: int,
    on_state: Callable[[StudyState], None],
    *,
    deadline: Deadline = Deadline(),  # noqa: B008  (a value)
) -> StudyState:
    """Bring the store to hold every run of the parts. What it holds already is not run again.

    `owner` is for whom the runs are done: "study/…" or, for trials of a plan, "plan". After the
    deadline it stops; the state that it returns says whether that was before the end. Beside the
    store lies a folder with checkpoints of long runs while they are not finished.
    """
    runs = {run.key: run for part in parts.values() for run in part}
    store.plan(owner, tier, {name: [run.key for run in part] for name, part in parts.items()})
    known = store.keys()
    missing = [run for key, run in runs.items() if key not in known]
    todo = jobs(missing)
    costs = [cost(job) for job in todo]
    fractions = [0.0] * len(todo)
    finished = len(runs) - len(missing)

    def state() -> StudyState:
        done = sum(each * share for each, share in zip(costs, fractions, strict=True))
        return StudyState(finished, len(runs), done, sum(costs))

    on_state(state())
    if not missing or deadline.left <= 0:
        return state()
    unfinished = Path(f"{store.path}.unfinished")
    # Whatever happens, no worker is left behind.
    with closing(run_jobs(todo, workers, unfinished)) as messages:
        for message in messages:
            if isinstance(message, Failed):
                raise message.error
            if isinstance(message, Finished):
                store.add(message.records)
                _discard(unfinished, message.records)
                finished += len(message.records)
                fractions[message.job] = 1.0
            else:
                fractions[message.job] = message.fraction
            on_state(state())
            if deadline.passed:
                break
    return state()


def _discard(unfinished: Path, records: list[Record]) -> None:
    """Remove the checkpoints of runs that the store now holds, and the folder with the last."""
    for record in records:
        (unfinished / f"{record.key}.safetensors").unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty
        unfinished.rmdir()
