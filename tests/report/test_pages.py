"""Pages and figures as data: what is drawn is what was measured, and chips are verdicts."""

import doctest
import re
from pathlib import Path

import pandas as pd
import pytest

from headwise.lab.result import StudyResult
from headwise.report.build import write_report
from headwise.report.figures import draw_all, panel_spec
from headwise.report.pages.head_map import measures, shades
from headwise.report.pages.study import study_page
from headwise.report.pages.template import render_page
from headwise.report.result_page import page, page_of
from house import ROOT
from page_samples import HOSTILE, sample_inspection, sample_result, samples


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    return sample_result(tmp_path_factory.mktemp("sample"))


def drawn_rows(result: StudyResult) -> list[pd.DataFrame]:
    """Every table inside the specification of the figure's one panel."""
    (panel,) = draw_all(result)["drop"].panels.values()
    return [pd.DataFrame(rows) for rows in panel.to_dict()["datasets"].values()]


def test_the_figure_draws_the_summary_of_the_table(result: StudyResult) -> None:
    lines = next(rows for rows in drawn_rows(result) if {"error_min", "seeds"} <= {*rows.columns})
    smallest = result.table.groupby(["heads", "length"])["error"].min()
    seen = lines.drop_duplicates(["heads", "length"]).set_index(["heads", "length"])["error_min"]
    assert seen.sort_index().tolist() == pytest.approx(smallest.tolist())


def test_every_seed_is_drawn_and_what_failed_is_marked(result: StudyResult) -> None:
    seeds = next(rows for rows in drawn_rows(result) if "state" in rows)
    assert len(seeds) == len(result.table)
    assert seeds["state"].value_counts().to_dict() == {"trained": 20, "stuck": 2, "diverged": 2}
    figure = draw_all(result)["drop"]
    assert "×: a seed that is stuck" in figure.caption
    assert "diverged" in figure.caption


def test_a_note_stands_in_the_figure(result: StudyResult) -> None:
    assert any("h = D = 4" in rows.to_string() for rows in drawn_rows(result))


def test_panels_for_pages_take_the_width_they_are_given(result: StudyResult) -> None:
    (panel,) = draw_all(result)["drop"].panels.values()
    assert panel_spec(panel)["width"] == "container"


def test_chips_are_verdicts_and_failed_claims_come_first(result: StudyResult) -> None:
    made = study_page(result)
    assert [chip.text for chip in made.chips] == ["1 holds", "1 fails", "1 not tested"]
    text = render_page(made)
    assert text.index("It rises") < text.index("It falls") < text.index("It flies")
    untested = next(point for point in made.points if point.statement == "It flies")
    assert untested.command == "headwise study run sample --tier full"


def test_the_table_has_no_empty_interval_and_no_nan(result: StudyResult) -> None:
    (table,) = study_page(result).tables
    assert len(table.rows) == 8
    assert not [cell for row in table.rows for cell in row if "nan" in cell or cell == "–"]
    assert "geometric mean" in table.columns


def test_terminal_and_page_have_one_mean(result: StudyResult) -> None:
    from dataclasses import replace

    by_mean = replace(result, study=replace(result.study, score="mean"))
    summary = by_mean.summary.set_index(["heads", "length"])["error_mean"]
    assert by_mean.first_table.stack().tolist() == pytest.approx(summary.tolist())


def test_the_report_is_written_whole_and_named_after_study_and_figure(
    result: StudyResult, tmp_path: Path
) -> None:
    path = write_report(result, tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"report.html", "runs.csv", *(f"sample-drop.{e}" for e in KINDS)}
    text = path.read_text()
    assert "<svg" in text.partition("<script>")[0]  # there without JavaScript
    assert HOSTILE not in text
    assert "&lt;script&gt;window.broken" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)\s*=\s*[\"']?(https?:)?//", text)


KINDS = ("csv", "png", "svg", "pdf")


def test_the_examples_on_the_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(ROOT / "docs" / "reports.md"), module_relative=False)
    assert outcome.attempted >= 3
    assert outcome.failed == 0
    assert (tmp_path / "plan.html").exists()


def test_every_result_has_a_page_that_answers_first() -> None:
    for name, each in samples().items():
        made = page_of(each)
        assert made.answer, name
        assert HOSTILE not in page(each), name


def test_a_map_uses_logarithmic_shades_where_one_head_would_drown_the_rest() -> None:
    heads = sample_inspection().heads
    assert list(measures(heads)) == ["importance", "size_at_1pct", "similarity"]
    depth, logarithmic = shades(heads["importance"])
    assert logarithmic
    assert max(depth) == 1
    assert sum(0.05 < each < 0.95 for each in depth) >= 8
    assert not shades(heads["size_at_1pct"])[1]
    assert shades(pd.Series([float("nan"), float("nan")]))[0] == [0, 0]
