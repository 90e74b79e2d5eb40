"""Small results of every kind that has a page, and a store with a study, made in a moment.

The study's numbers are given by a formula, with a seed that is stuck and one that diverged; names
hold what would be markup if it were not escaped.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.advise.plan import plan
from headwise.advise.probe.finding import COLUMNS, Finding
from headwise.build import TrialResults, WitnessComparison, frontier, retrieval, witness
from headwise.core.spec import spec
from headwise.lab.kinds import Column, Kind, Quantity, Reading, one_by_one, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Figure, Study, Tier, Verdict
from headwise.lab.work import perform
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.report.build import write_report
from headwise.report.evidence.gather import PaperEvidence, StudyEvidence
from headwise.report.evidence.html import evidence_page
from headwise.report.evidence.judge import Judgement
from headwise.report.evidence.tables import EvidenceTable
from headwise.report.pages.calculator import calculator_page
from headwise.report.pages.content import Live
from headwise.report.pages.index import IndexEntry, index_page
from headwise.report.pages.study import study_page
from headwise.report.pages.template import render_page
from headwise.report.result_page import page
from headwise.report.witnesses import witness_rows
from headwise.tasks import sum_of_maxima
from headwise.theory.head_count import phase_map
from model_samples import HOSTILE, sample_compression, sample_inspection

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@spec
class Place:
    """A task that says where its point is drawn."""

    heads: int
    length: int


ERROR = Quantity("NMSE", "the error over the variance", "", "ratio", ".2e")


def measured(run: Run) -> Reading:
    """Falls at four heads; seed 2 is stuck there, and diverged at one head."""
    if run.seed == 2 and run.task.heads == 1:
        return Reading(float("nan"))
    base = 1e-2 / run.task.heads if run.task.heads < 4 else 1e-5
    stuck = 500.0 if run.seed == 2 and run.task.heads == 4 else 1.0
    return Reading(base * stuck * (1 + 0.3 * run.seed) * run.task.length / 8)


def sample_kind(name: str, measured: Callable[[Run], Reading], engine: str) -> Kind:
    """A kind whose table has heads and lengths; register it where it is defined."""
    return Kind(
        name=name,
        error=ERROR,
        columns=(Column("heads", "heads", symbol="h"), Column("length", "length", "tokens", "T")),
        describe=lambda run: {"heads": run.task.heads, "length": run.task.length},
        perform=one_by_one(measured, ERROR, engine),
    )


register(sample_kind("page-sample", measured, "formula"))


def runs() -> list[Run]:
    """Four numbers of heads, two lengths, three seeds."""
    return [
        Run(kind="page-sample", task=Place(heads=heads, length=length), seed=seed)
        for heads in (1, 2, 3, 4)
        for length in (8, 16)
        for seed in (0, 1, 2)
    ]


def drop_notes(ours: pd.DataFrame) -> pd.DataFrame:
    """A line at four heads."""
    return pd.DataFrame({"part": ["main"], "heads": [4], "label": ["h = D = 4"]})


SAMPLE = Study(
    name="sample",
    title=f"Is this a page? {HOSTILE}",
    question="Does it show what the store holds?",
    paper="A paper, arXiv 2510.06662",
    tiers={
        "quick": Tier("nothing", lambda: {"main": runs()}),
        "full": Tier("more", lambda: {"main": runs()}),
    },
    parts={"main": f"The main part {HOSTILE}"},
    rows=("heads",),
    columns="length",
    finding=lambda results: Conclusion(f"The error falls at 4 heads {HOSTILE}.", 4),
    claims=(
        Claim("It falls", "us", lambda results: Verdict.of(True, "100×")),
        Claim("It rises", "us", lambda results: Verdict.of(False, "0×")),
        Claim("It flies", "2510.06662", lambda results: NOT_TESTED),
    ),
    figures=(
        Figure(
            "drop", "The drop", "A caption.", {"main": "main"}, "heads", "length", notes=drop_notes
        ),
    ),
)


def sample_result(folder: Path) -> StudyResult:
    """The study's result, read back from a store."""
    with Store(folder / "sample.db", write=True) as store:
        planned = runs()
        store.plan(SAMPLE.owner, "quick", {"main": [run.key for run in planned]})
        for run in planned:
            store.add(perform([run], lambda fraction, doing: None))
        return StudyResult.of(store, SAMPLE, "quick")


def sample_finding() -> Finding:
    """An answer with errors by heads."""
    rows = [
        ("descent", "held-out error", heads, 8 * (1 + seed), 16, seed, error * (1 + seed))
        for heads, error in ((1, 0.3), (2, 0.1), (3, 1e-4), (4, 1e-4))
        for seed in (0, 1)
    ]
    evidence = pd.DataFrame(rows, columns=list(COLUMNS))
    return Finding(
        f"3 heads {HOSTILE}.",
        3,
        settled_by="more samples",
        interval=(3, 4),
        confidence=0.93,
        evidence=evidence,
        notes=("A note.",),
    )


TASK = sum_of_maxima(5, intrinsic_dim=2, token_dim=2)


def sample_comparison() -> WitnessComparison:
    """Two groups of networks; with two heads nothing is forced."""
    errors = {1: (0.5, 0.6, 2.0), 2: (0.0, 0.01, 0.05)}
    kinds = ("forced by the witness", "root mean square", HOSTILE)
    rows = [
        {"group": group, "kind": kind, "error": error, "relative": error * scale, "heads": heads}
        for group, scale in (("trained", 1.0), (f"built {HOSTILE}", 0.5))
        for heads, found in errors.items()
        for kind, error in zip(kinds, found, strict=True)
    ]
    return WitnessComparison(TASK, tuple(rows))


def sample_trials() -> TrialResults:
    """Twelve attacks on two kinds of features, none of which breaks its certificate."""
    rows = [
        {"trial": i, "features": ("waves", HOSTILE)[i % 2], "outer": "Sum", "length": 8 + i}
        | {"asked": 0.1, "certified": 0.09 / (1 + i), "worst_found": 0.05 / (1 + i), "holds": True}
        for i in range(12)
    ]
    return TrialResults(tuple(rows))


def samples() -> dict[str, Any]:
    """A result of each kind, by the name of its page."""
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=2, heads=1), seed=0)
    return {
        "inspection": sample_inspection(),
        "large map": sample_inspection(40, 40, (3, 6, 12, 18, 24, 30, 36, 42, 48)),
        "compression": sample_compression(),
        "finding": sample_finding(),
        "plan": plan(layers=4, width=64, length=32, budget=4 * 64 * 64 * 4),
        "built": retrieval(TASK, error=0.1),
        "witness": witness(net, TASK, steps=5, starts=4),
        "comparison": sample_comparison(),
        "trials": sample_trials(),
        "frontier": frontier(lengths=[16], errors=(0.1, 0.05)),
        "phase-map": phase_map((1, 2, 3, 4), (8, 32, 128, 512), intrinsic_dim=4, head_dim=2),
    }


def live_page(result: StudyResult, fraction: float) -> str:
    """The study's page while it runs."""
    doing = f"{round(24 * fraction)}/24 runs, 12 steps/s"
    return render_page(study_page(result, Live(fraction, doing, "0:01:00")))


def data_of(name: str, result: Any) -> pd.DataFrame:
    """What the result itself holds, which its page offers as CSV."""
    if name in ("inspection", "large map"):
        return result.heads
    if name == "compression":
        return result.heads()
    if name == "finding":
        return result.evidence
    if name == "plan":
        return result.table()
    if name == "built":
        return result.attention()
    return witness_rows(result) if name == "witness" else result.to_pandas()


def write_pages(folder: Path) -> dict[str, Path]:
    """Make a small store and write a page of every kind, and its data; gives the pages' paths."""
    result = sample_result(folder)
    found = {"study": write_report(result, folder / "study")}
    entry = IndexEntry.of(result, "study/report.html")
    texts = {}
    for name, each in samples().items():
        texts[name] = page(each)
        data_of(name, each).to_csv(folder / f"{name}.csv", index=False)
    texts["calculator"] = render_page(calculator_page())
    texts["index"] = render_page(index_page([entry]))
    texts["live"] = live_page(result, 0.25)
    table = EvidenceTable(result, {"headwise": HOSTILE})
    shown = StudyEvidence(SAMPLE, table, Judgement.of(result))
    texts["evidence"] = evidence_page([PaperEvidence(HOSTILE, (shown,))])
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text)
    return found
