"""How often is the probe right? Fresh random tasks of a seed, and a table."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from headwise.advise.probe.ask import probe
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.trials import ProbeTrial, draw_trial
from headwise.core.errors import require
from headwise.core.progress import OnProgress, quiet

SAMPLES = 20_000
_DATA, _FUNCTION = 1, 2


@dataclass(frozen=True)
class Attempt:
    """One task, probed one way."""

    trial: ProbeTrial
    given: str
    finding: Finding

    @property
    def off(self) -> int | None:
        """Answer minus truth; None for a refusal."""
        heads = self.finding.heads
        return None if heads is None else heads - self.trial.intrinsic_dim

    def __str__(self) -> str:
        mark, found = "✓" if self.off == 0 else "✗", self.finding
        return (
            f"{mark} {self.given}: {found.heads or 'no answer'} "
            f"(confidence {found.confidence:.2f}, {found.seconds:.0f} s)  {self.trial}"
        )


@dataclass(frozen=True)
class ProbeEvaluation:
    """All attempts; `rows` has one each, `table` counts the right and the wrong ones."""

    seed: int
    tasks: int
    attempts: tuple[Attempt, ...]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row an attempt: the task, the truth, the answer."""
        return pd.DataFrame([_row(attempt) for attempt in self.attempts])

    @cached_property
    def table(self) -> pd.DataFrame:
        """Exact answers, within one, confident and wrong, by what was given: a row each."""
        ways = dict.fromkeys(attempt.given for attempt in self.attempts)
        return pd.DataFrame([_summary(given, self.attempts) for given in ways])

    def __str__(self) -> str:
        shown = self.table.set_index("given").T.rename_axis(None, axis=1)
        return f"{self.tasks} tasks of seed {self.seed}\n{shown.astype(str).to_string()}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))

    def to_data(self) -> dict[str, Any]:
        """The table and the rows, for JSON."""
        return {"summary": self.table.to_dict("records"), "rows": self.rows.to_dict("records")}

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_data(), default=str)


def probe_eval(
    seed: int,
    tasks: int = 20,
    *,
    samples: int = SAMPLES,
    data: bool = True,
    function: bool = True,
    jobs: int | None = None,
    on_progress: OnProgress = quiet,
) -> ProbeEvaluation:
    """Try the probe on fresh random retrieval tasks: how often is it right?

    `seed` draws the tasks; take one nobody has used. Each is given as a noisy `function` and as
    `data`, of so many `samples`. `on_progress` is told every attempt.
    """
    require(tasks >= 1, f"tasks is {tasks}; at least one is needed")
    require(data or function, "try the probe on data, on the function, or on both; not on nothing")
    expected, found = tasks * (data + function), list[Attempt]()
    for attempt in attempts(seed, tasks, 0, data, function, samples, jobs=jobs):
        found.append(attempt)
        on_progress(len(found) / expected, str(attempt))
    return ProbeEvaluation(seed, tasks, tuple(found))


def attempts(
    seed: int,
    tasks: int,
    first: int = 0,
    data: bool = True,
    function: bool = True,
    samples: int = SAMPLES,
    seconds: float = 3600.0,
    jobs: int | None = None,
) -> Iterator[Attempt]:
    """Draw task after task; probe its noisy function, then a sample of it."""
    for index in range(first, first + tasks):
        trial = draw_trial(seed, index)
        if function:
            noisy = trial.noisy_target((seed, index, _FUNCTION))
            found = probe(target=noisy, sampler=trial.task.sample, seed=seed)
            yield Attempt(trial, "function", found)
        if data:
            inputs, targets = trial.sample(samples, (seed, index, _DATA))
            found = probe(inputs, targets, seed=seed, seconds=seconds, jobs=jobs)
            yield Attempt(trial, "data", found)


def _row(attempt: Attempt) -> dict[str, object]:
    return {
        "given": attempt.given,
        "task": str(attempt.trial),
        "truth": attempt.trial.intrinsic_dim,
        "heads": attempt.finding.heads,
        "confidence": round(attempt.finding.confidence, 4),
        "off": attempt.off,
        "seconds": round(attempt.finding.seconds, 1),
    }


def _summary(given: str, found: tuple[Attempt, ...]) -> dict[str, object]:
    here = [a for a in found if a.given == given]

    def count(test: Callable[[Attempt], bool]) -> int:
        return sum(map(test, here))

    return {
        "given": given,
        "tasks": len(here),
        "exact": count(lambda a: a.off == 0),
        "within 1": count(lambda a: a.off is not None and abs(a.off) <= 1),
        "refused": count(lambda a: a.off is None),
        "confident": count(lambda a: a.finding.confident),
        "confident, off by 1": count(lambda a: a.finding.confident and abs(a.off or 0) == 1),
        "confident, off by more": count(lambda a: a.finding.confident and abs(a.off or 0) > 1),
        "seconds a task": round(sum(a.finding.seconds for a in here) / max(len(here), 1), 1),
    }
