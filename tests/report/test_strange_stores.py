"""Figures of stores nobody tuned for: no line where there is no error, no number that is none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from headwise.core.spec import spec
from headwise.lab.kinds import Column, Kind, Reading, one_by_one, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import Figure, Tier
from headwise.lab.summary import readable_value
from headwise.lab.work import perform
from headwise.report.figures import DrawnFigure, draw_all
from headwise.report.pages.study import comparisons
from page_samples import ERROR, SAMPLE

Value = int | float | str | bool
Errors = Callable[[Any, Any, int], float]
_errors: dict[str, Errors] = {}


@spec
class Cell:
    """A place in a figure."""

    across: Value
    line: Value
    case: str


register(
    Kind(
        name="page-strange",
        error=ERROR,
        columns=(
            Column("across", "a title of an axis that no panel is wide enough for"),
            Column("line", "line"),
        ),
        describe=lambda run: {"across": run.task.across, "line": run.task.line},
        perform=one_by_one(
            lambda run: Reading(_errors[run.task.case](run.task.across, run.task.line, run.seed)),
            ERROR,
            "table",
        ),
    )
)
FIGURE = Figure("fig", "A figure", "A caption.", {"main": "main"}, "across", "line")


def strange(
    folder: Path,
    errors: Errors,
    across: Sequence[Value] = (1, 2, 3),
    lines: Sequence[Value] = (8, 16),
    figures: tuple[Figure, ...] = (FIGURE,),
    **changes: Any,
) -> StudyResult:
    """A study of these errors, by what is across, by line and by seed."""
    case = f"{folder.name}-{len(_errors)}"
    _errors[case] = errors
    runs = [
        Run(kind="page-strange", task=Cell(across=a, line=b, case=case), seed=seed)
        for a in across
        for b in lines
        for seed in (0, 1)
    ]
    study = replace(
        SAMPLE,
        tiers={"quick": Tier("nothing", lambda: {"main": runs})},
        rows=("across",),
        columns="line",
        figures=figures,
        **changes,
    )
    with Store(folder / f"{len(_errors)}.db", write=True) as store:
        store.plan(study.owner, "quick", {"main": [run.key for run in runs]})
        store.add(perform(runs, lambda fraction, doing: None))
        return StudyResult.of(store, study, "quick")


def by_place(across: float, line: Any, seed: int) -> float:
    """Falls with what is across."""
    return 0.1 / (1 + float(across)) * (1 + seed)


def drawn(result: StudyResult, name: str = "fig") -> tuple[DrawnFigure, dict[str, Any]]:
    """The figure, and its one panel as data."""
    figure = draw_all(result)[name]
    (panel,) = figure.panels.values()
    return figure, panel.to_dict()


def line_rows(panel: dict[str, Any]) -> pd.DataFrame:
    """What the solid lines join."""
    layer = next(
        each
        for each in panel["layer"]
        if each["mark"].get("type") == "line" and "strokeDash" not in each["mark"]
    )
    return pd.DataFrame(panel["datasets"][layer["data"]["name"]])


@pytest.mark.parametrize("lost", [nan, 0.0, -0.1])
def test_a_line_has_a_gap_where_no_seed_has_an_error_to_show(lost: float, tmp_path: Path) -> None:
    result = strange(tmp_path, lambda a, b, seed: lost if a == 2 else by_place(a, b, seed))
    _, panel = drawn(result)
    rows = line_rows(panel)
    assert rows.loc[rows["across"] == 2, "error_min"].isna().tolist() == [True, True]
    assert rows.loc[rows["across"] != 2, "error_min"].notna().all()
    assert panel["layer"][0]["encoding"]["x"]["axis"]["values"] == [1, 2, 3]


def test_a_negative_error_is_not_called_zero_and_has_no_geometric_mean(tmp_path: Path) -> None:
    result = strange(
        tmp_path, lambda a, b, seed: -0.1 if (a, seed) == (2, 0) else by_place(a, b, seed)
    )
    figure, _ = drawn(result)
    assert "Triangle at the bottom: an error below 0" in figure.caption
    assert "exactly 0" not in figure.caption
    (table,) = comparisons(result)
    means = {row[0]: row[table.columns.index("geometric mean")] for row in table.rows}
    assert means["2"] == ""
    assert means["1"] != ""


def test_numbers_and_words_stand_on_one_axis_as_words(tmp_path: Path) -> None:
    result = strange(tmp_path, lambda a, b, seed: 0.1 * (1 + seed), (1, "two", 3.5), (1, "two"))
    figure, panel = drawn(result)
    assert panel["layer"][0]["encoding"]["x"]["axis"]["values"] == ["1", "3.5", "two"]
    assert [swatch.value for swatch in figure.legend] == ["1", "two"]


@pytest.mark.parametrize("lines", [(0.5, 2.0), (False, True), (1e-7, 3e7)])
def test_a_legend_names_lines_as_the_figure_does(lines: tuple[Value, ...], tmp_path: Path) -> None:
    """JavaScript writes 2, true and 1e-7 where Python writes 2.0, True and 1e-07."""
    figure, panel = drawn(strange(tmp_path, by_place, lines=lines))
    assert {swatch.value for swatch in figure.legend} == {*line_rows(panel)["line_of"]}
    filters = str(panel["layer"])
    assert "datum.line_of" in filters
    assert "toString" not in filters


def test_a_value_has_one_colour_in_all_figures_of_a_study(tmp_path: Path) -> None:
    """The second figure shows the larger two of three lines."""
    few = replace(FIGURE, name="few", panels={"other": "other"})
    whole = strange(tmp_path, by_place, lines=(8, 16, 32))
    part = whole.table[whole.table["line"] > 8].assign(part="other")
    study = replace(whole.study, parts={"main": "m", "other": "o"}, figures=(FIGURE, few))
    both = replace(whole, study=study, table=pd.concat([whole.table, part]))
    figures = draw_all(both)
    colours = {swatch.value: swatch.colour for swatch in figures["fig"].legend}
    assert {swatch.value: swatch.colour for swatch in figures["few"].legend} == {
        value: colours[value] for value in ("16", "32")
    }


def test_panels_that_say_the_colours_have_no_title_of_a_legend(tmp_path: Path) -> None:
    faceted = replace(FIGURE, facet="line")
    figure = draw_all(strange(tmp_path, by_place, figures=(faceted,)))["fig"]
    assert (figure.legend, figure.legend_title) == ((), "")
    printed = figure.chart.to_dict()["concat"][0]["layer"]
    assert all(
        each["encoding"]["color"]["legend"] is None
        for each in printed
        if "color" in each["encoding"]
    )


def test_the_one_panel_that_has_runs_of_several_says_which_it_is(tmp_path: Path) -> None:
    several = replace(FIGURE, panels={"main": "the first", "other": "the second"})
    result = strange(tmp_path, by_place, figures=(several,))
    study = replace(result.study, parts={"main": "m", "other": "o"})
    assert list(draw_all(replace(result, study=study))["fig"].panels) == ["the first"]


def test_an_axis_breaks_its_title_and_writes_short_numbers(tmp_path: Path) -> None:
    _, panel = drawn(strange(tmp_path, by_place, across=(0.1, 0.1 + 0.2, 1.0)))
    axis = panel["layer"][0]["encoding"]["x"]
    assert all(len(line) <= 34 for line in axis["title"])
    assert "'.6~g'" in axis["axis"]["labelExpr"]
    assert readable_value(1234567.0) == "1234567"


@pytest.mark.parametrize("across", [(0, 1, 2), (-2, -1, 0)])
def test_a_logarithmic_axis_is_not_drawn_through_zero(
    across: tuple[int, ...], tmp_path: Path
) -> None:
    logarithmic = replace(FIGURE, x_log=True)
    _, panel = drawn(strange(tmp_path, lambda a, b, seed: 0.1, across, figures=(logarithmic,)))
    assert panel["layer"][0]["encoding"]["x"]["type"] == "ordinal"


def test_an_axis_of_hundreds_of_decades_names_few(tmp_path: Path) -> None:
    _, panel = drawn(strange(tmp_path, lambda a, b, seed: 10.0 ** (100 * a - 300)))
    assert len(panel["layer"][0]["encoding"]["y"]["axis"]["values"]) <= 13
