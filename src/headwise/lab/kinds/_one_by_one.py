"""Kinds that do not train: a measurement a run, one after the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from headwise.core.progress import OnProgress, part_of
from headwise.lab.kinds._registry import Perform, Quantity
from headwise.lab.run import Run
from headwise.training import Outcome


@dataclass(frozen=True)
class Reading:
    """What was measured of a run: the number it is judged by, and other facts by name."""

    error: float
    facts: Mapping[str, float] = field(default_factory=dict)


def one_by_one(
    measure: Callable[[Run], Reading],
    error: Quantity,
    engine: str,
    reason: str = "",
    prepare: Callable[[Run, OnProgress], None] | None = None,
) -> Perform:
    """The `perform` of a kind that measures each run by itself.

    `engine` says in a word what did the work and `reason` why. `prepare` does what takes long
    before a measurement, such as a training that is kept, and reports how far it is.
    """

    def perform(job: Sequence[Run], on_progress: OnProgress, folder: Path | None) -> list[Outcome]:
        outcomes = []
        for number, run in enumerate(job, 1):
            if prepare is not None:
                prepare(run, part_of(on_progress, (number - 1) / len(job), number / len(job)))
            found = measure(run)
            value = found.error if isfinite(found.error) else None
            outcomes.append(
                Outcome(
                    seed=run.seed,
                    error=value,
                    error_last=value,
                    unit=error.unit,
                    best_step=None,
                    diverged=value is None,
                    curve=(),
                    engine=engine,
                    engine_reason=reason,
                    params={},
                    facts=found.facts,
                )
            )
            on_progress(number / len(job), engine)
        return outcomes

    return perform
