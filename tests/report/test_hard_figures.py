"""Figures that are hard to draw: a right picture, or a sentence that says why there is none."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headwise.core.spec import spec
from headwise.lab.kinds import Reading, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import IntervalFigure, Study, Tier
from headwise.lab.work import perform
from headwise.report.figures import draw_all
from headwise.report.intervals import draw_intervals, interval_panels
from headwise.report.lines.names import apart
from headwise.report.lines.style import in_lines
from headwise.report.pages.study import study_page
from headwise.report.theme import ordered
from page_samples import SAMPLE, sample_kind, sample_result


@spec
class Odd:
    """A task whose error is as its case says."""

    heads: int
    length: int
    case: str


ERRORS: dict[str, Callable[[Run], float]] = {
    "no number": lambda run: nan,
    "endless": lambda run: inf,
    "zero": lambda run: 0.0,
    "negative": lambda run: -0.1,
    "alike": lambda run: 0.1 / run.task.heads,
    "one": lambda run: 0.1,
}

register(sample_kind("page-odd", lambda run: Reading(ERRORS[run.task.case](run)), "table"))


def odd(folder: Path, case: str, heads: tuple[int, ...] = (1, 2), **changes: object) -> StudyResult:
    """The sample study on runs of this case."""
    runs = [
        Run(kind="page-odd", task=Odd(heads=each, length=length, case=case), seed=seed)
        for each in heads
        for length in (8, 16)
        for seed in (0, 1)
    ]
    study: Study = replace(SAMPLE, tiers={"quick": Tier("nothing", lambda: {"main": runs})})
    figures = tuple(replace(figure, notes=None, **changes) for figure in study.figures)  # type: ignore[arg-type]
    study = replace(study, figures=figures)
    with Store(folder / "odd.db", write=True) as store:
        store.plan(study.owner, "quick", {"main": [run.key for run in runs]})
        store.add(perform(runs, lambda fraction, doing: None))
        return StudyResult.of(store, study, "quick")


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("no number", "every run diverged"),
        ("endless", "every run diverged"),
        ("zero", "every error is exactly 0"),
        ("negative", "no error is above 0"),
    ],
)
def test_what_cannot_be_drawn_is_said(case: str, why: str, tmp_path: Path) -> None:
    page = study_page(odd(tmp_path, case))
    assert not page.figures
    (sentence,) = page.sentences
    assert why in sentence
    assert "The drop" in sentence


def test_runs_that_diverged_are_on_the_first_screen(tmp_path: Path) -> None:
    chips = {chip.text: chip.mood for chip in study_page(odd(tmp_path, "no number")).chips}
    assert chips["8 of 8 runs diverged"] == "bad"


def test_names_of_lines_that_end_together_are_moved_apart(tmp_path: Path) -> None:
    (panel,) = draw_all(odd(tmp_path, "alike"))["drop"].panels.values()
    layers = panel.to_dict()["layer"]
    names = next(layer for layer in layers if layer.get("name") == "note_line")
    rows = pd.DataFrame(panel.to_dict()["datasets"][names["data"]["name"]])
    assert sorted(rows["label"]) == ["T = 16", "T = 8"]
    assert rows["error_min"].nunique() == 2


def test_lines_whose_names_would_stand_at_others_ends_are_named_by_the_legend(
    tmp_path: Path,
) -> None:
    drawn = draw_all(odd(tmp_path, "one", (1, 2, 3, 4, 5), x="length", colour="heads"))["drop"]
    (panel,) = drawn.panels.values()
    assert not [each for each in panel.to_dict()["layer"] if each.get("name") == "note_line"]
    assert [each.label for each in drawn.legend] == ["1", "2", "3", "4", "5"]


def test_a_seed_that_diverged_has_the_colour_of_its_line(tmp_path: Path) -> None:
    (panel,) = draw_all(sample_result(tmp_path))["drop"].panels.values()
    bold = [each for each in panel.to_dict()["layer"] if each["mark"].get("strokeWidth") == 3.5]
    assert [each["encoding"]["stroke"]["field"] for each in bold] == ["length"]


def test_names_stay_in_the_panel() -> None:
    assert apart(np.asarray([0.0, 0.0, 1.0]), 0.1).tolist() == pytest.approx([0.05, 0.15, 0.95])


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0.1, 0.11, 0.6, 0.61], [0.2, 0.9]])
def test_places_keep_their_order_and_their_middle(places: list[float]) -> None:
    found = apart(np.asarray(places), 0.06)
    assert (np.diff(found) >= 0.06 - 1e-9).all()
    assert found.mean() == pytest.approx(np.mean(places))
    assert apart(np.asarray([0.2, 0.9]), 0.06).tolist() == [0.2, 0.9]


def test_panels_are_called_and_ordered_as_the_study_says(tmp_path: Path) -> None:
    titles = {16: "long ones", 8: "short ones"}
    result = odd(tmp_path, "alike", facet="length", facet_titles=titles)
    drawn = draw_all(result)["drop"]
    assert list(drawn.panels) == ["long ones", "short ones"]
    assert not drawn.legend  # the panels say what the colours would


def test_many_lines_have_colours_of_their_own() -> None:
    assert len(set(ordered(24))) == 24
    assert ordered(24)[0] == ordered(3)[0]


def test_a_long_title_of_an_axis_breaks_at_a_comma() -> None:
    title = "loss increase, nats a token, mean over seeds"
    assert in_lines(title) == ["loss increase, nats a token,", "mean over seeds"]
    assert in_lines("error") == "error"
    share = "share of the layer's parameters kept"
    assert in_lines(share) == ["share of the layer's", "parameters kept"]


def test_differences_share_their_axis_and_a_page_has_the_legend(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "label": ["layer 0", "layer 1"],
            "panel": ["half", "all"],
            "group": ["one", "two"],
            "mean": [-0.1, 0.2],
            "low": [-0.3, 0.1],
            "high": [0.1, 0.3],
            "seeds": 4,
        }
    )
    figure = IntervalFigure("gap", "t", "c", "a", lambda table: rows, zero=True)
    panels = interval_panels(figure, rows, for_page=True)
    marks = [panel.to_dict()["layer"][-1]["encoding"] for panel in panels.values()]
    assert [mark["x"]["scale"]["domain"] for mark in marks] == [[-0.3, 0.3], [-0.3, 0.3]]
    assert all(mark["color"]["legend"] is None for mark in marks)
    assert draw_intervals(figure, rows).to_dict()["columns"] == 2  # readable at a paper's width
    study = replace(SAMPLE, figures=(figure,))
    drawn = draw_all(replace(odd(tmp_path, "alike"), study=study))["gap"]
    assert [swatch.value for swatch in drawn.legend] == ["two", "one"]


def test_a_logarithmic_axis_of_many_odd_values_names_round_ones(tmp_path: Path) -> None:
    for heads, named in (
        ((484, 809, 1697, 2929, 4849, 8769), [500, 1000, 2000, 5000]),
        ((8, 16, 128, 256, 1024, 4096), [8, 16, 128, 256, 1024, 4096]),
        ((7, 1105), [7, 1105]),
    ):
        result = odd(tmp_path / str(heads[0]), "alike", heads, x="heads", x_log=True)
        drawn = next(iter(draw_all(result).values())).panels
        axes = [panel.to_dict()["layer"][0]["encoding"]["x"]["axis"] for panel in drawn.values()]
        assert all(axis["values"] == named for axis in axes)


def _long(length: int) -> bool:
    return length > 8


def test_a_figure_draws_the_lines_it_was_told_to(tmp_path: Path) -> None:
    result = odd(tmp_path, "alike", x="heads", colour="length", only=("length", _long))
    drawn = next(iter(draw_all(result).values()))
    assert set(drawn.data["length"]) == {16}
