"""Doing the work: runs in, records out. This is what a worker process executes."""

import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from headwise.core.device import chosen_device
from headwise.core.progress import OnProgress
from headwise.core.spec import canonical_json
from headwise.lab.kinds import Kind, kind_of
from headwise.lab.run import Run
from headwise.training import Outcome


@dataclass(frozen=True)
class Record:
    """A finished run as it is stored.

    `specification` is the run's canonical JSON and `key` its hash. `result` holds the `error`,
    what that is (`error_name`) and its `unit`, and what else is known. The seconds are this run's
    share of its job's, by the clock and of the processor, which is of the kind `cpu`. Of a run
    that failed the result says why (`failure`) and after how many `tries`.
    """

    key: str
    specification: str
    seed: int
    status: str  # "done", "diverged" or "failed"
    result: dict[str, Any]
    versions: dict[str, str]
    wall_seconds: float
    cpu_seconds: float
    cpu: str
    finished: str


def jobs(runs: Sequence[Run], in_order: bool = False) -> list[list[Run]]:
    """Runs that are worth training together, most expensive job first (it balances workers).

    `in_order`: the job first that holds the first run. Of equal price, all measurements of one
    seed's network follow each other: it is opened once.
    """

    def company(run: Run) -> str:
        together = kind_of(run).together(run)
        return canonical_json(
            (run.kind, run.task, run.net, run.training, run.seed // together, run.measure)
        )

    ordered = sorted(runs, key=company)
    groups = [list(group) for _, group in groupby(ordered, company)]
    if in_order:
        places = {run.key: place for place, run in enumerate(runs)}
        return sorted(groups, key=lambda group: min(places[run.key] for run in group))
    return sorted(groups, key=lambda group: -cost(group))


def cost(job: Iterable[Run]) -> float:
    """Relative cost of a job, for progress bars and balance."""
    return sum(kind_of(run).cost(run) for run in job)


def perform(
    job: Sequence[Run], on_progress: OnProgress, unfinished: Path | None = None
) -> list[Record]:
    """Do the runs of one job; they differ in nothing but their seed.

    `unfinished` is a folder for checkpoints, from which a job that was killed goes on.
    """
    kind = kind_of(job[0])
    kind.check(job[0])
    wall, cpu = time.perf_counter(), time.process_time()
    outcomes = kind.perform(job, on_progress, unfinished)
    seconds = (time.perf_counter() - wall) / len(job), (time.process_time() - cpu) / len(job)
    return [
        _record(kind, run, outcome, *seconds) for run, outcome in zip(job, outcomes, strict=True)
    ]


def _record(kind: Kind, run: Run, outcome: Outcome, wall: float, cpu: float) -> Record:
    return Record(
        key=run.key,
        specification=canonical_json(run),
        seed=run.seed,
        status="diverged" if outcome.diverged else "done",
        result={
            "error": outcome.error,
            "error_name": kind.error.name,
            "unit": kind.error.unit,
            "error_last": outcome.error_last,
            "best_step": outcome.best_step,
            "curve": outcome.curve,
            "engine": outcome.engine,
            "engine_reason": outcome.engine_reason,
            "device": chosen_device(),
            **({"facts": dict(outcome.facts)} if outcome.facts else {}),
        },
        versions=versions(),
        wall_seconds=wall,
        cpu_seconds=cpu,
        cpu=cpu_kind(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def failed_record(run: Run, error: Exception, tries: int) -> Record:
    """A run that was tried as often as it may be, and why it failed."""
    return Record(
        key=run.key,
        specification=canonical_json(run),
        seed=run.seed,
        status="failed",
        result={"failure": str(error), "tries": tries},
        versions=versions(),
        wall_seconds=0.0,
        cpu_seconds=0.0,
        cpu=cpu_kind(),
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


@cache
def cpu_kind() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (named or [platform.processor() or platform.machine()])[0]
