"""Conducting a study: plan it, run what the store does not have yet, keep every result."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from headwise.lab.pool import Finished, run_jobs
from headwise.lab.spec import Run
from headwise.lab.store import Store
from headwise.lab.work import cost, jobs


@dataclass(frozen=True)
class State:
    """How far a study is; costs are relative."""

    finished_runs: int
    total_runs: int
    finished_cost: float
    total_cost: float


def conduct(
    store: Store,
    study: str,
    tier: str,
    parts: dict[str, list[Run]],
    workers: int,
    on_state: Callable[[State], None],
) -> None:
    """Bring the store to hold every run of the parts. What it holds already is not run again."""
    runs = {run.key: run for part in parts.values() for run in part}
    store.plan(study, tier, {name: [run.key for run in part] for name, part in parts.items()})
    known = store.keys()
    missing = [run for key, run in runs.items() if key not in known]
    todo = jobs(missing)
    costs = [cost(job) for job in todo]
    total_cost = sum(costs)
    fractions = [0.0] * len(todo)
    finished = len(runs) - len(missing)

    def report() -> None:
        done = sum(each * share for each, share in zip(costs, fractions, strict=True))
        on_state(State(finished, len(runs), done, total_cost))

    report()
    with closing(run_jobs(todo, workers)) as messages:  # whatever happens, no worker is left behind
        for message in messages:
            if isinstance(message, Finished):
                store.add(message.records)
                finished += len(message.records)
                fractions[message.job] = 1.0
            else:
                fractions[message.job] = message.fraction
            report()
