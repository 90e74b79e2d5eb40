"""A mistake in a study is found before its runs; a study without one is let through."""

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from headwise.core.errors import InputError
from headwise.core.progress import Deadline
from headwise.core.spec import spec
from headwise.lab.check import check_study
from headwise.lab.conduct import StudyState, conduct
from headwise.lab.crew import Place
from headwise.lab.kinds import Column, Kind, Quantity, Reading, one_by_one, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import Claim, Conclusion, Figure, IntervalFigure, Study, Tier, Verdict
from headwise.studies import find_study, run_study, show

sys.path.insert(0, str(Path(__file__).parent))


@spec
class Number:
    """A task that is a number."""

    value: float


@dataclasses.dataclass(frozen=True)
class Unregistered:
    """A specification that JSON does not know by name."""

    value: float


DIFFERENCE = Quantity("difference", "the number minus one", "units", "difference", ".3f")
register(
    Kind(
        name="subtraction",
        error=DIFFERENCE,
        columns=(Column("value", "the number", "units"), Column("sign", "its sign")),
        describe=lambda run: {
            "value": run.task.value,
            "sign": "plus" if run.task.value > 0 else "minus",
        },
        perform=one_by_one(
            lambda run: Reading(run.task.value - 1 + 0.1 * run.seed), DIFFERENCE, "sum"
        ),
    )
)


def runs(*values: float, task: Callable[..., Any] = Number, seeds: int = 2) -> list[Run]:
    return [
        Run(kind="subtraction", task=task(value=value), seed=seed)
        for value in values
        for seed in range(seeds)
    ]


def holds(results: pd.DataFrame) -> Verdict:
    return Verdict.of(bool((results["error"] < 9).all()), "some numbers")


GOOD = Study(
    name="good",
    title="A good study",
    question="Is it let through?",
    tiers={"quick": Tier("nothing", lambda: {"first": runs(0.5, 2.0), "second": runs(-1.0)})},
    parts={"first": "The first", "second": "The second"},
    rows=("value",),
    columns="sign",
    score="mean",
    finding=lambda results: Conclusion("It is.", 1),
    claims=(Claim("It holds", "us", holds),),
    figures=(
        Figure("values", "Values", "A caption", {"first": "1", "second": "2"}, "value", "sign"),
        Figure("seeds", "Seeds", "A caption", {"first": "1"}, "sign", "value", facet="value"),
    ),
)


def without_rows(results: pd.DataFrame) -> Verdict:
    return Verdict.of(results["error"].iloc[0] > 0, "")


def only_second(results: pd.DataFrame) -> Verdict:
    return Verdict.of(results.loc[results["part"] == "second", "error"].iloc[0] > 0, "")


(FIRST, SECOND) = GOOD.figures
assert isinstance(FIRST, Figure)
MISTAKES: dict[str, tuple[dict[str, Any], dict[str, list[Run]] | None, str]] = {
    "unknown row": ({"rows": ("valeu",)}, None, "rows names the column valeu"),
    "unknown column": ({"columns": "no"}, None, "columns names the column no"),
    "unknown setting": ({"setting": ("x", "value")}, None, "setting names the column x"),
    "figure": ({"figures": (replace(FIRST, x="y"),)}, None, "figure values names the column y"),
    "panel": (
        {"figures": (replace(FIRST, panels={"third": ""}),)},
        None,
        "has a panel for third, which is no part",
    ),
    "log axis of words": (
        {"figures": (replace(FIRST, x="sign", x_log=True),)},
        None,
        "sign is not a number",
    ),
    "a figure called runs": (
        {"figures": (replace(FIRST, name="runs"),)},
        None,
        "call the figure otherwise",
    ),
    "two figures of a name": ({"figures": (FIRST, FIRST)}, None, "two figures"),
    "references": (
        {"figures": (replace(FIRST, references=lambda ours: ours),)},
        None,
        "the references of figure values lacks the column label",
    ),
    "interval figure": (
        {"figures": (IntervalFigure("i", "t", "c", "a", lambda results: results),)},
        None,
        "figure i lacks the column label",
    ),
    "claim on no rows": (
        {"claims": (Claim("First", "us", without_rows),)},
        None,
        "the claim 'First' cannot be computed from a table of 0 rows",
    ),
    "claim on one part": (
        {"claims": (Claim("Second", "us", only_second),)},
        None,
        "the claim 'Second' cannot be computed",
    ),
    "claim that gives no verdict": (
        {"claims": (Claim("None", "us", lambda results: True),)},  # type: ignore[arg-type, return-value]
        None,
        "gives bool, not Verdict",
    ),
    "finding": ({"finding": lambda results: results["no"]}, None, "finding cannot be computed"),
    "published": (
        {"published": lambda: pd.DataFrame({"part": []})},
        None,
        "published lacks the column error",
    ),
    "a tier that is none": ({"tiers": {"quick": dict}}, None, "'quick' is no .*Tier"),
    "no tiers": ({"tiers": {}}, None, "has no tier 'quick'; it has none"),
    "a tier that leaves": (
        {"tiers": {"quick": Tier("", lambda: sys.exit(0))}},
        None,
        "cannot be made .SystemExit",
    ),
    "a finding that leaves": (
        {"finding": lambda results: sys.exit(0)},
        None,
        "finding cannot be computed",
    ),
    "no parts": ({}, {}, "no parts"),
    "a part without a title": ({}, {"third": runs(1.0)}, "a part 'third'"),
    "a part without runs": ({}, {"first": []}, "part 'first' has no runs"),
    "a run twice": ({}, {"first": runs(1.0, 1.0)}, "a run is there twice"),
    "unknown kind": (
        {},
        {"first": [replace(run, kind="adition") for run in runs(1.0)]},
        "no kind of run is called 'adition'",
    ),
    "not hashable": ({}, {"first": runs(float("nan"))}, "cannot hold nan"),
    "not readable": ({}, {"first": runs(1.0, task=Unregistered)}, "decorate its class with @spec"),
    "not describable": (
        {},
        {"first": [Run(kind="subtraction", task="seven", seed=0)]},
        "cannot describe a run",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_before_anything_is_stored(name: str, tmp_path: Path) -> None:
    changes, parts, sentence = MISTAKES[name]
    study = replace(GOOD, **changes)
    if parts is not None:
        study = replace(study, tiers={"quick": Tier("", lambda: parts)})
    with pytest.raises(InputError, match=sentence):
        run_study(study, store=tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"tiers": {"quick": dict}},
        {"tiers": {"quick": Tier("", lambda: {"first": [1, 2]})}},  # type: ignore[list-item, dict-item]
        {"claims": ("words",)},
        {"tiers": None},
    ],
)
def test_what_cannot_be_shown_gets_a_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="good"):
        show(replace(GOOD, **changes))


def test_a_study_without_published_numbers_is_run_summarised_and_drawn(tmp_path: Path) -> None:
    """Errors may be negative: the mean is arithmetic and the axis linear."""
    check_study(GOOD, GOOD.runs("quick"))
    seen: list[float] = []
    result = run_study(
        GOOD, store=tmp_path / "a.db", jobs=1, on_progress=lambda share, doing: seen.append(share)
    )
    assert seen[-1] == 1.0
    row = result.summary.set_index("value").loc[0.5]
    assert row["error_mean"] == pytest.approx(-0.45)
    assert row["error_low"] < -0.45 < row["error_high"]
    assert result.first_table.loc[2.0, "plus"] == pytest.approx(1.05)
    assert set(result.table["unit"]) == {"units"}
    assert (result.table["cpu_seconds"] >= 0).all()
    assert result.column("value").label == "the number, units"
    assert "holds: It holds" in str(result)
    assert "It is." in result._repr_html_()
    (claim,) = result.to_data()["claims"]
    assert claim == {
        "claim": "It holds",
        "status": "holds",
        "numbers": "some numbers",
        "same_with_other_seeds": 1.0,
        "why": "",
    }
    assert set(result.charts) == {"values", "seeds"}
    assert "log" not in str(result.figure("values").to_dict())
    page = result.report(tmp_path / "out")
    assert "mean (arithmetic)" in page.read_text()
    with pytest.raises(InputError, match="there is no figure 'none'; there are: values, seeds"):
        result.figure("none")


def test_after_the_deadline_conduct_stops_and_says_so(tmp_path: Path) -> None:
    parts = {"first": runs(1.0, 2.0)}
    states: list[StudyState] = []
    with Store(tmp_path / "a.db", write=True) as store:
        late = conduct(
            store, "plan", "t", parts, Place(jobs=1), states.append, deadline=Deadline.after(0)
        )
        assert not late.complete
        assert late.finished_runs == 0
        done = conduct(store, "plan", "t", parts, Place(jobs=1), states.append)
        assert done.complete
        again = conduct(
            store, "plan", "t", parts, Place(jobs=1), states.append, deadline=Deadline.after(0)
        )
        assert again.complete  # nothing was left to do
        assert store.studies() == []
        with pytest.raises(InputError, match="holds no finished run of good"):
            StudyResult.of(store, GOOD, "quick")


def test_two_kinds_cannot_have_one_name() -> None:
    with pytest.raises(InputError, match="two kinds of run are called 'text'"):
        register(
            Kind(
                name="text",
                error=DIFFERENCE,
                columns=(),
                describe=lambda run: {},
                perform=one_by_one(lambda run: Reading(0.0), DIFFERENCE, "none"),
            )
        )


def test_a_study_of_someone_elses_making_is_checked_before_its_runs(tmp_path: Path) -> None:
    def broken() -> dict[str, list[Run]]:
        return {"transition": [Run(kind="class-token", task=1 / 0, seed=0)]}

    mistakes = {
        "the runs of tier 'quick' cannot be made .ZeroDivisionError": {
            "tiers": {"quick": Tier("nothing", broken)}
        },
        "cannot be made .AttributeError": {"tiers": {"quick": Tier("nothing", lambda: None)}},
        "has a mistake .TypeError": {"figures": None},
    }
    for sentence, change in mistakes.items():
        with pytest.raises(InputError, match=sentence):
            run_study(replace(GOOD, **change), store=tmp_path / "a.db")  # type: ignore[arg-type]
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("code", ["1/0", "import sys; sys.exit(3)", "def f(:", "X = 1"])
def test_a_module_with_a_mistake_gets_a_sentence(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mistaken_study.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mistaken_study", raising=False)
    with pytest.raises(InputError, match="mistaken_study"):
        find_study("mistaken_study:X")
