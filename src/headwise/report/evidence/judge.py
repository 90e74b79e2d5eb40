"""Verdicts and answers of shipped tables, studies side by side: to ask other seeds takes long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.core.workers import worker_count
from headwise.lab.crew import Job, Place, results_of
from headwise.lab.result import StudyResult
from headwise.lab.study import Conclusion, Verdict
from headwise.report.evidence.tables import read_table
from headwise.studies import STUDIES

_WORTH_A_WORKER = 4  # tables: a worker takes as long to start as a few of them take to judge


@dataclass(frozen=True)
class Judgement:
    """What a table says: a verdict a claim of its study, in their order, and the answer."""

    verdicts: tuple[Verdict, ...]
    conclusion: Conclusion

    @staticmethod
    def of(result: StudyResult) -> "Judgement":
        """Asks every claim, on other seeds as well."""
        return Judgement(tuple(result.verdicts.values()), result.conclusion)


def judge_tables(tables: Sequence[Path], jobs: int | None) -> Mapping[Path, Judgement]:
    """The judgement of each table, by so many processes; by default as many as there are cores."""
    workers = min(worker_count(jobs), -(-len(tables) // _WORTH_A_WORKER))
    largest_first = sorted(tables, key=lambda path: -path.stat().st_size)
    work = "headwise.report.evidence.judge:judge_table"
    asked = [Job(work, (path,), path.stat().st_size, "table") for path in largest_first]
    found = results_of(asked, Place(jobs=max(workers, 1)))
    return {largest_first[number]: judgement for number, judgement in found}


def judge_table(path: Path, *_: Any) -> Judgement:
    """A job: the judgement of a table of a study that comes with headwise."""
    return Judgement.of(read_table(path, STUDIES[path.stem]).result)
