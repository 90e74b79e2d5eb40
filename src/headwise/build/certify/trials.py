"""Certificates tried on random tasks of every kind: built, certified, attacked."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from headwise.build.built import Built
from headwise.build.certify.attack import Attack
from headwise.build.certify.random_tasks import CertificateTrial, draw_trial
from headwise.core.lazy import Drawn, named
from headwise.core.progress import OnProgress, quiet
from headwise.core.shown import Tabled
from headwise.theory.checks import positive, whole


@dataclass(frozen=True)
class TrialResults(Drawn, Tabled):
    """One row a trial: the task, the error asked for, the certified one and the worst found."""

    drawn_by: ClassVar[str] = "headwise.report.constructions:draw_trials"

    rows: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The trials whose certificate is above what was asked or below what was found."""
        return [row for row in self.rows if not row["holds"]]

    @property
    def holds(self) -> bool:
        """Does every certificate hold?"""
        return not self.broken

    def records(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return list(self.rows)

    def __str__(self) -> str:
        count = len(self.rows)
        closest = max(row["worst_found"] / row["certified"] for row in self.rows)
        lines = [
            f"{count - len(self.broken)} of {count} certificates hold; the closest attack reached "
            f"{100 * closest:.1f} % of the certified error"
        ]
        return "\n".join(lines + [f"broken: {row}" for row in self.broken])


def trials(
    count: int = 200,
    seconds: float = 2.0,
    seed: int = 0,
    on_progress: OnProgress = quiet,
    *,
    on: str = "local",
    jobs: int | None = None,
) -> TrialResults:
    """Build `count` random tasks of every kind and attack each certificate for some seconds.

    One after the other in this process, or `jobs` at once in others; with `on` "ray" (started here)
    or "ray:ADDRESS" on a cluster, by default as many at once as it has cores.
    """
    count, seed = whole("count", count), whole("seed", seed, least=0)
    seconds = positive("seconds", seconds)
    crew = named("headwise.lab.crew")
    place = crew.Place(on, 1 if jobs is None and on == crew.LOCAL else jobs)
    work = f"{__name__}:row_of_trial"
    asked = [crew.Job(work, (seed, index, seconds)) for index in range(count)]
    rows = dict[int, dict[str, Any]]()
    for number, row in crew.results_of(asked, place):
        rows[number] = row
        on_progress(len(rows) / count, f"{len(rows)} of {count} trials")
    return TrialResults(tuple(row for _, row in sorted(rows.items())))


def row_of_trial(seed: int, index: int, seconds: float, *told: Any) -> dict[str, Any]:
    """Trial number `index`: built, attacked, in a row. As a job it is not told anything more."""
    trial = draw_trial(index, seed)
    built, attack = trial.run(rounds=None, seconds=seconds)
    return {"trial": index} | _row(trial, built, attack)


def _row(trial: CertificateTrial, built: Built, attack: Attack) -> dict[str, Any]:
    task, certified = trial.task, built.certificate.error
    return {
        "features": trial.kind,
        "outer": type(task.outer).__name__,
        "intrinsic_dim": task.intrinsic_dim,
        "token_dim": task.token_dim,
        "length": task.length,
        "subsets": bool(task.subsets),
        "params": built.params()["total"],
        "asked": trial.error,
        "certified": certified,
        "worst_found": attack.worst,
        "holds": certified <= trial.error and attack.holds,
    }
