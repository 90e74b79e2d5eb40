"""Pages and figures as data: what is drawn is what was measured, and chips are verdicts."""

import doctest
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from headwise.core.errors import InputError
from headwise.core.spec import spec
from headwise.lab.kinds import Reading, register
from headwise.lab.result import StudyResult
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.study import Claim, Tier, Verdict
from headwise.lab.work import failed_record, perform
from headwise.report.build import report, write_report
from headwise.report.figures import draw_all, panel_spec
from headwise.report.pages.head_map import measures, shades
from headwise.report.pages.markup import linked, raised
from headwise.report.pages.study import comparisons, study_page
from headwise.report.pages.template import render_page
from headwise.report.result_page import page, page_of, write_page
from house import ROOT
from model_samples import HOSTILE, sample_inspection
from page_samples import SAMPLE, sample_finding, sample_kind, sample_result, samples


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


def test_powers_are_raised_and_names_stay_as_they_are() -> None:
    text = linked("rows go with length^−0.36, 1/error^k, 10^-3; <b>x^y</b>")
    assert "length<sup>−0.36</sup>" in text
    assert "error<sup>k</sup>" in text
    assert "10<sup>-3</sup>" in text
    assert "&lt;b&gt;x^y" in text
    assert '<a href="https://arxiv.org/abs/2510.06662" rel="noreferrer">' in linked("2510.06662")
    assert raised("T^−0.5: 1234.56789 <b>") == "T<sup>−0.5</sup>: 1234.56789 &lt;b&gt;"


def test_chips_are_verdicts_and_failed_claims_come_first(result: StudyResult) -> None:
    made = study_page(result)
    verdicts = ["1 holds", "1 fails", "1 not tested"]
    assert [chip.text for chip in made.chips] == [*verdicts, "2 of 24 runs diverged"]
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


HARD = {1: (float("nan"),), 2: (float("inf"), 1e-2), 3: (0.0, 1e-3), 4: (1e-5,)}


@spec
class Hard:
    """A task whose error is what its name says: none, endless, zero, or of one seed alone."""

    heads: int
    length: int = 8


def hard_reading(run: Run) -> Reading:
    return Reading(HARD[run.task.heads][run.seed])


register(sample_kind("page-hard", hard_reading, "table"))


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """A store with errors that are no numbers, endless or zero, one seed, a failed run, and a half
    of what was planned."""
    planned = [
        Run(kind="page-hard", task=Hard(heads=heads), seed=seed)
        for heads in HARD
        for seed in range(4)
    ]
    done = [run for run in planned if run.seed < len(HARD[run.task.heads])]
    study = replace(
        SAMPLE, name="hard", tiers={"quick": Tier("nothing", lambda: {"main": planned})}
    )
    with Store(tmp_path_factory.mktemp("hard") / "hard.db", write=True) as store:
        store.plan(study.owner, "quick", {"main": [run.key for run in planned]})
        for run in done:
            store.add(perform([run], lambda fraction, doing: None))
        store.add([failed_record(planned[-1], ValueError("broke <b>down</b>"), 3)])
        return StudyResult.of(store, study, "quick")


def test_a_hard_store_has_a_page_that_says_what_it_lacks(hard: StudyResult) -> None:
    made = study_page(hard)
    chips = [chip.text for chip in made.chips]
    assert "1 run failed" in chips
    assert "6 of 16 runs finished" in chips
    text = render_page(made)
    assert "broke &lt;b&gt;down&lt;/b&gt;" in text
    table = next(each for each in made.tables if each.title.startswith("The main part"))
    cells = {row[0]: row[2:5] for row in table.rows}
    assert cells["1"] == ["", "", "one seed"]
    assert cells["2"] == ["1.00e-02", "1.00e-02", "one seed"]
    assert cells["3"] == ["0.00e+00", "0.00e+00", ""]
    assert cells["4"] == ["1.00e-05", "1.00e-05", "one seed"]


def test_a_logarithmic_axis_invents_no_number_for_zero(hard: StudyResult) -> None:
    figure = draw_all(hard)["drop"]
    assert "exactly 0" in figure.caption
    (panel,) = figure.panels.values()
    frames = [pd.DataFrame(rows) for rows in panel.to_dict()["datasets"].values()]
    seeds = next(rows for rows in frames if "state" in rows)
    assert seeds["state"].value_counts().to_dict() == {"trained": 3, "diverged": 2, "zero": 1}
    summary = hard.summary.set_index("heads")
    assert summary.loc[3, "error_mean"] == 0
    assert summary.loc[3, "stuck"] == 0
    lines = [rows for rows in frames if "error_min" in rows and "seeds" in rows]
    assert all((rows["error_min"].dropna() > 0).all() for rows in lines)  # else a gap


def test_an_index_lists_pages_beside_stores_and_passes_over_the_rest(tmp_path: Path) -> None:
    folder, empty = tmp_path / "results", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    write_page(sample_finding(), folder / "probe.html")
    (folder / "other.html").write_text("<html><title>another's</title></html>")
    lie = '<meta name="headwise" content="[1]">'
    (folder / "broken.html").write_text(lie)
    text = report(folder, all=True).read_text()
    assert 'href="probe.html"' in text
    assert "93 % probable" in text
    assert "0 studies, 1 result." in text
    assert HOSTILE not in text
    assert "another&#39;s" not in text
    again = report(folder, all=True).read_text()  # the index itself is no entry
    assert "0 studies, 1 result." in again
    with pytest.raises(InputError, match="no store with a finished study, and no page"):
        report(empty, all=True)


@pytest.mark.parametrize(
    ("ratio", "said"), [(0.466, "0.47×"), (99.4, "99×"), (312.0, "310×"), (5100.0, "5,100×")]
)
def test_a_factor_is_written_as_people_do(ratio: float, said: str, result: StudyResult) -> None:
    settings = ["part", *result.study.settings]
    theirs = result.summary[settings].assign(error=result.summary["error_min"] / ratio)
    study = replace(result.study, published=lambda: theirs)
    (table,) = comparisons(replace(result, study=study))
    assert {row[table.columns.index("smallest/published")] for row in table.rows} == {said}


def test_while_a_study_runs_its_claims_are_asked_once(result: StudyResult) -> None:
    """Asking other seeds takes a while, in which no worker would get a new run."""
    asked: list[int] = []

    def check(table: pd.DataFrame) -> Verdict:
        asked.append(len(table))
        return Verdict("holds", "")

    study = replace(result.study, claims=(Claim("It holds", "test", check),))
    running = replace(result, study=study, final=False)
    (verdict,) = running.verdicts.values()
    assert (verdict.status, verdict.why) == ("cannot tell", "the study is running")
    assert running.conclusion == study.finding(result.table)
    assert asked == [len(result.table)]


def test_a_published_error_of_zero_has_no_ratio(result: StudyResult) -> None:
    """As of an accuracy that is printed as 1."""
    shown = result.table[["part", *result.study.settings]].drop_duplicates()
    perfect = replace(result.study, published=lambda: shown.assign(error=0.0))
    table = comparisons(replace(result, study=perfect))[0]
    assert table.columns[-3:] == ["published", "smallest/published", "mean/published"]
    assert all(row[-2:] == ["", ""] for row in table.rows)
