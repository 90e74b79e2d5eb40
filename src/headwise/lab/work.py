"""Doing the work: runs in, records out. This is what a worker process executes."""

import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from headwise.core.spec import canonical_json
from headwise.lab.kinds.all_kinds import kind_of
from headwise.lab.run import Run
from headwise.training import Outcome


@dataclass(frozen=True)
class Record:
    """A finished run as it is stored."""

    key: str
    specification: str
    seed: int
    status: str  # "done" or "diverged"
    result: dict[str, Any]
    versions: dict[str, str]
    wall_seconds: float
    finished: str


def jobs(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that are worth training together, most expensive job first (it balances workers)."""

    def company(run: Run) -> str:
        together = kind_of(run).together(run)
        return canonical_json((run.task, run.net, run.training, run.seed // together))

    ordered = sorted(runs, key=company)
    groups = [list(group) for _, group in groupby(ordered, company)]
    return sorted(groups, key=lambda group: -cost(group))


def cost(job: Iterable[Run]) -> float:
    """Relative cost of a job, for progress bars and balance."""
    return sum(kind_of(run).cost(run) for run in job)


def perform(
    job: Sequence[Run], on_progress: Callable[[float], None], unfinished: Path | None = None
) -> list[Record]:
    """Do the runs of one job; they differ in nothing but their seed.

    `unfinished` is a folder for checkpoints, from which a job that was killed goes on.
    """
    started = time.perf_counter()
    outcomes = kind_of(job[0]).perform(job, on_progress, unfinished)
    seconds = (time.perf_counter() - started) / len(job)
    return [_record(run, outcome, seconds) for run, outcome in zip(job, outcomes, strict=True)]


def _record(run: Run, outcome: Outcome, seconds: float) -> Record:
    return Record(
        key=run.key,
        specification=canonical_json(run),
        seed=run.seed,
        status="diverged" if outcome.diverged else "done",
        result={
            "error": outcome.error,
            "error_last": outcome.error_last,
            "best_step": outcome.best_step,
            "curve": outcome.curve,
            "engine": outcome.engine,
            "engine_reason": outcome.engine_reason,
            **({"facts": dict(outcome.facts)} if outcome.facts else {}),
        },
        versions=versions(),
        wall_seconds=seconds,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@cache
def versions() -> dict[str, str]:
    """What computed the result."""
    packages = ("headwise", "torch", "numpy", "numba")
    return {
        **{package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
