"""How often is the probe right? Fresh random tasks of a seed, and a table."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.advise.probe.ask import FIGURES, probe
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.judged.attempt import Way
from headwise.advise.probe.judged.perform import perform
from headwise.advise.probe.judged.score import ZooEvaluation
from headwise.advise.probe.trials import ProbeTrial, draw_trial
from headwise.core.device import chosen_device
from headwise.core.errors import check_whole, require
from headwise.core.files import check_can_write
from headwise.core.memory import check_can_draw
from headwise.core.progress import OnProgress, quiet
from headwise.lab.crew import LOCAL, Job, Place, results_of

SAMPLES = 20_000
_DATA, _FUNCTION = 1, 2
_WAYS: tuple[Way, ...] = ("function", "data")
_SECONDS = 3600.0  # for a probe; none takes as long


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
    zoo: bool = False,
    first: int = 0,
    samples: int = SAMPLES,
    data: bool = True,
    function: bool = True,
    seconds: float = _SECONDS,
    jobs: int | None = None,
    on: str = LOCAL,
    gpus_per_job: float = 0.0,
    device: str = "cpu",
    out: str | Path | None = None,
    figure: str | Path | None = None,
    on_progress: OnProgress = quiet,
) -> ProbeEvaluation | ZooEvaluation:
    """Try the probe on fresh random tasks: how often is it right, and does it know?

    `seed` draws the tasks; take one nobody has used; `first` is the number of the first. Each is
    given as a noisy `function` and as `data`, of so many `samples`; each attempt may take so many
    `seconds`. `on_progress` is told every attempt. `jobs` are the threads of a probe; with `on`
    "ray" or "ray:ADDRESS", probes run at once on a cluster, with `gpus_per_job` of a GPU each.
    `device` is auto, cpu, cuda or mps.

    The tasks are retrieval, or with `zoo` of all kinds (`headwise.advise.probe.zoo`); then `jobs`
    attempts are made at once on this machine, too, the attempts are added to the file `out` as
    they are finished and not repeated if they are there, and `figure` is where the reliability
    diagram is written.
    """
    check_whole(tasks, "tasks", 1)
    check_whole(seed, "seed", 0)
    check_whole(first, "first", 0)
    check_whole(samples, "samples", 1)
    require(seconds > 0, f"seconds is {seconds}; an attempt takes some time, a number above 0")
    require(data or function, "try the probe on data, on the function, or on both; not on nothing")
    place = Place(on, jobs, gpus_per_job, device)
    require(zoo or (out is None and figure is None), "out and figure belong to zoo")
    check_can_write(out, "--out")
    require(
        figure is None or Path(figure).suffix in FIGURES,
        f"the figure is a {', '.join(FIGURES)} file, not {figure}",
    )
    check_can_write(figure, "the figure")
    check_can_draw(figure)
    if zoo:
        ways = _WAYS[not function : 1 + data]
        kept = None if out is None else Path(out)
        indices = range(first, first + tasks)
        judged = perform(seed, indices, ways, samples, seconds, place, kept, on_progress)
        evaluation = ZooEvaluation(seed, tuple(judged))
        if figure is not None:
            evaluation.figure(figure)
        return evaluation
    expected, found = tasks * (data + function), dict[int, Attempt]()
    if on == LOCAL:
        here = attempts(seed, tasks, first, data, function, samples, seconds, jobs, device)
        tried: Iterable[tuple[int, Attempt]] = enumerate(here)
    else:
        indices = range(first, first + tasks)
        tried = _attempts_there(seed, indices, data, function, samples, seconds, place)
    for number, attempt in tried:
        found[number] = attempt
        on_progress(len(found) / expected, str(attempt))
    return ProbeEvaluation(seed, tasks, tuple(found[number] for number in sorted(found)))


def attempts(
    seed: int,
    tasks: int,
    first: int = 0,
    data: bool = True,
    function: bool = True,
    samples: int = SAMPLES,
    seconds: float = _SECONDS,
    jobs: int | None = None,
    device: str = "cpu",
) -> Iterator[Attempt]:
    """Draw task after task; probe its noisy function, then a sample of it."""
    for index in range(first, first + tasks):
        for given in _ways(data, function):
            found = _probed(seed, index, given, samples, seconds, jobs, device)
            yield Attempt(draw_trial(seed, index), given, found)


def _ways(data: bool, function: bool) -> list[str]:
    return ["function"] * function + ["data"] * data


def _probed(
    seed: int,
    index: int,
    given: str,
    samples: int,
    seconds: float,
    jobs: int | None,
    device: str,
) -> Finding:
    """The finding on a trial's noisy function, or on a sample of it."""
    trial = draw_trial(seed, index)
    if given == "function":
        noisy = trial.noisy_target((seed, index, _FUNCTION))
        return probe(target=noisy, sampler=trial.task.sample, seed=seed, device=device)
    inputs, targets = trial.sample(samples, (seed, index, _DATA))
    return probe(inputs, targets, seed=seed, seconds=seconds, jobs=jobs, device=device)


def probe_trial(
    seed: int,
    index: int,
    given: str,
    samples: int,
    seconds: float,
    on_progress: OnProgress,
    folder: Path | None,
) -> Finding:
    """One attempt as a job of a cluster, of one thread."""
    return _probed(seed, index, given, samples, seconds, 1, chosen_device())


def _attempts_there(
    seed: int,
    indices: range,
    data: bool,
    function: bool,
    samples: int,
    seconds: float,
    place: Place,
) -> Iterator[tuple[int, Attempt]]:
    """The same attempts with their numbers, done on a cluster; as they come."""
    wanted = [(index, given) for index in indices for given in _ways(data, function)]
    work = "headwise.advise.probe.evaluate:probe_trial"
    jobs = [
        Job(work, (seed, index, given, samples, seconds), label=given) for index, given in wanted
    ]
    for number, finding in results_of(jobs, place):
        index, given = wanted[number]
        yield number, Attempt(draw_trial(seed, index), given, finding)


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
