"""How often is the probe right? Fresh random tasks of a seed, and a table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from headwise.advise.probe.ask import probe
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.trials import ProbeTrial, draw_trial

SAMPLES = 20_000
_DATA, _FUNCTION = 1, 2


@dataclass(frozen=True)
class Attempt:
    """One task, probed one way."""

    trial: ProbeTrial
    given: str
    finding: Finding
    seconds: float

    @property
    def off(self) -> int | None:
        """Answer minus truth; None for a refusal."""
        heads = self.finding.heads
        return None if heads is None else heads - self.trial.intrinsic_dim


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
            yield Attempt(trial, "function", found, found.seconds)
        if data:
            inputs, targets = trial.sample(samples, (seed, index, _DATA))
            found = probe(inputs, targets, seed=seed, seconds=seconds, jobs=jobs)
            yield Attempt(trial, "data", found, found.seconds)


def rows(found: list[Attempt]) -> pd.DataFrame:
    """One row an attempt."""
    return pd.DataFrame(
        [
            {
                "given": a.given,
                "task": str(a.trial),
                "truth": a.trial.intrinsic_dim,
                "heads": a.finding.heads,
                "confidence": round(a.finding.confidence, 4),
                "off": a.off,
                "seconds": round(a.seconds, 1),
            }
            for a in found
        ]
    )


def table(found: list[Attempt]) -> pd.DataFrame:
    """Shares of exact answers, within one, confident and wrong; by what was given."""
    return pd.DataFrame([_summary(given, found) for given in ("function", "data")]).query(
        "tasks > 0"
    )


def _summary(given: str, found: list[Attempt]) -> dict[str, object]:
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
        "seconds a task": round(sum(a.seconds for a in here) / max(len(here), 1), 1),
    }
