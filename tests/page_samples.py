"""Small results of every kind that has a page, and a store with a study, made in a moment.

The study's numbers are given by a formula, with a seed that is stuck and one that diverged; names
hold what would be markup if it were not escaped.
"""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.advise.plan import plan
from headwise.advise.probe.finding import COLUMNS, Finding
from headwise.core.spec import spec
from headwise.lab.kinds import Column, Kind, Quantity, Reading, one_by_one, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Figure, Study, Tier, Verdict
from headwise.lab.work import perform
from headwise.pretrained.inspection import Inspection
from headwise.report.build import write_report
from headwise.report.pages.calculator import calculator_page
from headwise.report.pages.index import IndexEntry, index_page
from headwise.report.pages.template import render_page
from headwise.report.result_page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<script>window.broken = 1</script> \"quoted\" 'names' <!-- and </script>"


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


register(
    Kind(
        name="page-sample",
        error=ERROR,
        columns=(Column("heads", "heads", symbol="h"), Column("length", "length", "tokens", "T")),
        describe=lambda run: {"heads": run.task.heads, "length": run.task.length},
        perform=one_by_one(measured, ERROR, "formula"),
    )
)


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
            name="drop",
            title="The drop",
            caption="A caption.",
            panels={"main": "main"},
            x="heads",
            colour="length",
            notes=drop_notes,
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


def sample_inspection() -> Inspection:
    """Three layers of four heads; one head matters a thousand times more than the others."""
    places = [(layer, head) for layer in range(3) for head in range(4)]
    heads = pd.DataFrame(
        [
            {
                "layer": layer,
                "head": head,
                "importance": 1.0 if (layer, head) == (1, 2) else 1e-3 * (1 + layer + head),
                "size_at_1pct": 8 + head,
                "similarity": 0.1 * head,
                "most_similar_head": (head + 1) % 4,
            }
            for layer, head in places
        ]
    )
    errors = pd.DataFrame(
        [
            {"layer": layer, "head": head, "length": length, "size": size, "change": 1 / size}
            for layer, head in places
            for length in (8, 16)
            for size in (2, 4, 8)
        ]
    )
    found = ["one head carries half of the importance", "later layers do not saturate more"]
    nothing = pd.DataFrame()
    return Inspection(HOSTILE, heads, errors, nothing, found, "nats a token", "loss", "some text")


def sample_finding() -> Finding:
    """An answer with errors by heads."""
    rows = [
        ("descent", "held-out error", heads, 8, 16, seed, error * (1 + seed))
        for heads, error in ((1, 0.3), (2, 0.1), (3, 1e-4), (4, 1e-4))
        for seed in (0, 1)
    ]
    evidence = pd.DataFrame(rows, columns=list(COLUMNS))
    return Finding(f"3 heads {HOSTILE}.", 3, "more samples", (3, 4), 0.93, evidence, ("A note.",))


def samples() -> dict[str, Any]:
    """A result of each kind, by the name of its page."""
    return {
        "inspection": sample_inspection(),
        "finding": sample_finding(),
        "plan": plan(layers=4, width=64, length=32, budget=4 * 64 * 64 * 4),
    }


def write_pages(folder: Path) -> dict[str, Path]:
    """Make a small store and write a page of every kind; gives their paths."""
    result = sample_result(folder)
    found = {"study": write_report(result, folder / "study")}
    entry = IndexEntry.of(result, "study/report.html")
    texts = {name: page(each) for name, each in samples().items()}
    texts["calculator"] = render_page(calculator_page())
    texts["index"] = render_page(index_page([entry]))
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text)
    return found
