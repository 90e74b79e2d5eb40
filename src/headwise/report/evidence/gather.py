"""Everything the evidence pages say, as data: papers, their studies, their claims with verdicts."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from headwise.lab.study import Claim, Study, Verdict
from headwise.report.evidence.compare import cpus_of
from headwise.report.evidence.judge import Judgement, judge_tables
from headwise.report.evidence.tables import EvidenceTable, read_table
from headwise.report.figures import DrawnFigure
from headwise.studies import STUDIES

TIER = "standard"
_ORDER = ("does not hold", "cannot tell", "holds", "not tested")
_ARXIV = re.compile(r"\d{4}\.\d{5}")
OTHER = "Questions that no paper asks"


@dataclass(frozen=True)
class StudyEvidence:
    """A study, its table and what that says; both are None where it was not run yet."""

    study: Study
    found: EvidenceTable | None
    judged: Judgement | None

    @property
    def tier(self) -> str:
        """The tier that was run, or that is to be run."""
        return self.found.result.tier if self.found else TIER

    @property
    def command(self) -> str:
        """How to run it again."""
        data = " --data FOLDER" if self.study.parts_of_evidence else ""
        return f"headwise study run {self.study.name} --tier {self.tier}{data}"

    @property
    def price(self) -> str:
        """What that costs: as it was measured, else as the study says."""
        if self.found is None:
            return self.study.tier(self.tier).price
        return f"{self.found.cpu_minutes:.0f} CPU-minutes, measured"

    @cached_property
    def verdicts(self) -> list[tuple[Claim, Verdict]]:
        """Claims that fail first, then those that cannot be told, then those that hold."""
        if self.judged is None:
            return []
        found = zip(self.study.claims, self.judged.verdicts, strict=True)
        return sorted(found, key=lambda each: _ORDER.index(each[1].status))

    @property
    def answer(self) -> str:
        """The answer to the study's question, in a sentence."""
        return self.judged.conclusion.sentence if self.judged else ""

    @property
    def differences(self) -> Sequence[str]:
        """What differs from the published setting, and how it was done."""
        return self.study.notes

    @cached_property
    def figures(self) -> dict[str, DrawnFigure]:
        """The study's figures by name."""
        return dict(self.found.result.charts) if self.found else {}

    @property
    def made_with(self) -> str:
        """Runs, seeds, processors and versions, in a line."""
        found = self.found
        if found is None:
            return ""
        runs = found.result.table.drop_duplicates("key")
        used = ", ".join(f"{name} {each}" for name, each in sorted(found.versions.items()))
        seeds = sorted(int(seed) for seed in runs["seed"].unique())
        made = f"{len(runs)} runs, seeds {seeds[0]} to {seeds[-1]}, on {cpus_of(found.result)}"
        return f"{made}; {used}"


@dataclass(frozen=True)
class PaperEvidence:
    """The studies of one paper."""

    title: str
    studies: tuple[StudyEvidence, ...]

    @property
    def tally(self) -> str:
        """How many of its claims hold, fail or cannot be told; how many studies were not run."""
        counts = Counter(verdict.status for each in self.studies for _, verdict in each.verdicts)
        tested = sum(counts.values()) - counts["not tested"]
        unrun = sum(each.found is None for each in self.studies)
        if unrun == len(self.studies):
            return f"Not run yet: none of its {unrun} studies." if unrun > 1 else "Not run yet."
        said = f"{counts['holds']} of {tested} tested claims hold"
        said += f", {counts['does not hold']} do not, {counts['cannot tell']} cannot be told"
        if unrun:
            said += f"; {unrun} of {len(self.studies)} studies not run yet"
        return said + "."


def gather(folder: Path, jobs: int | None = None) -> list[PaperEvidence]:
    """The papers that the studies are of, in their order, with what the folder's tables say.

    So many processes judge them; by default as many as there are cores.
    """
    studies = list(STUDIES.values())
    tables = {study.name: folder / f"{study.name}.parquet" for study in studies}
    judged = judge_tables([path for path in tables.values() if path.is_file()], jobs)
    papers: dict[str, list[StudyEvidence]] = {}
    titles: dict[str, str] = {}
    for study in studies:
        path = tables[study.name]
        number = _ARXIV.search(study.paper)
        paper = number[0] if number else OTHER
        titles.setdefault(paper, study.paper if number else OTHER)
        found = read_table(path, study) if path.is_file() else None
        papers.setdefault(paper, []).append(StudyEvidence(study, found, judged.get(path)))
    return [PaperEvidence(titles[paper], tuple(each)) for paper, each in papers.items()]


def said_number(verdict: Verdict) -> str:
    """The deciding number with its interval, and the published one; nothing where there is none."""
    if verdict.value is None:
        return ""
    said = f"{verdict.meaning}: {verdict.value:.3g}"
    if verdict.interval is not None:
        said += f" (other seeds: {verdict.interval[0]:.3g} to {verdict.interval[1]:.3g})"
    if verdict.published is not None:
        said += f"; published: {verdict.published:.3g}"
    return said


def digest(data: pd.DataFrame) -> str:
    """What a figure draws, to six digits, as a short hash."""
    text = data.to_csv(index=False, float_format="%.6g")
    return hashlib.sha256(text.encode()).hexdigest()[:16]
