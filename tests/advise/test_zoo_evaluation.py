"""`probe-eval --zoo`: outcomes, calibration, the file of attempts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headwise.advise.probe import ZooEvaluation, probe_eval
from headwise.advise.probe.judged.attempt import Assignment, Way, ZooAttempt
from headwise.advise.probe.judged.perform import read_attempts
from headwise.core.errors import InputError
from headwise.core.files import append_line
from headwise.core.intervals import Interval

QUICK = {"zoo": True, "samples": 60, "function": False}  # 60 samples are refused at once


def attempt(
    index: int,
    heads: int | None,
    confidence: float = 0.0,
    acceptable: tuple[int | str, ...] = (1,),
    name: str = "means",
    given: Way = "data",
    interval: tuple[int, int] | None = None,
) -> ZooAttempt:
    assignment = Assignment(0, index, given, 100, 60.0)
    around = interval or (None if heads is None else (heads, heads))
    return ZooAttempt(
        assignment, name, f"{name}: a task", acceptable, heads, around, confidence, "…", 1.0
    )


def test_outcomes_are_counted_by_class_and_in_total() -> None:
    evaluation = ZooEvaluation(
        0,
        (
            attempt(0, 1, 0.99),
            attempt(1, 2, 0.95),  # confident and wrong
            attempt(2, 2, 0.6, interval=(1, 2)),  # wrong, but in its interval
            attempt(3, None),  # refused wrongly
            attempt(4, None, acceptable=(1, "refuse"), name="parities"),
            attempt(5, 3, 0.9, acceptable=("refuse",), name="pointers"),
            attempt(6, 4, 0.97, acceptable=(4,), name="retrieval"),
            attempt(6, None, acceptable=(4,), name="retrieval", given="function"),
            replace(attempt(7, None, given="function"), failed=True),
        ),
    )
    table = evaluation.by_class.set_index(["given", "class"])
    means = table.loc[("data", "means")]
    assert list(means.iloc[:8]) == [4, 1, 2, 0, 1, 2, 1, 0]
    assert table.loc[("data", "pointers"), "confident and wrong"] == 1
    assert table.loc[("data", "parities"), "refused rightly"] == 1
    totals = evaluation.totals.set_index("given")
    assert totals.loc["data", "confident and wrong, %"] == pytest.approx(100 * 2 / 7, abs=0.1)
    assert totals.loc["data", "refusals that are right, %"] == 50
    assert totals.loc["data", "answers that are right, %"] == 40
    assert totals.loc["data", "exact of retrieval, %"] == 100
    assert totals.loc["function", "failed"] == 1
    text = str(evaluation)
    assert "CONFIDENT AND WRONG" in str(evaluation.attempts[1])
    assert "Given as data" in text
    assert "confident and wrong, %" in text
    assert json.loads(evaluation.to_json())["attempts"][2]["interval"] == [1, 2]


def test_more_than_one_layer_is_a_refusal_of_one() -> None:
    said = replace(attempt(0, 3, 0.99, acceptable=("refuse",), name="induction"), layers=2)
    assert said.outcome == "refused rightly"
    assert not said.confident_and_wrong
    assert replace(said, acceptable=(3,)).outcome == "refused wrongly"


def test_reliability_compares_what_was_stated_with_what_was_right() -> None:
    right = [attempt(i, 1, 0.92) for i in range(18)]
    wrong = [attempt(20 + i, 2, 0.92) for i in range(2)]
    evaluation = ZooEvaluation(0, (*right, *wrong, attempt(30, 1, 1.0), attempt(31, None)))
    ninety, sure = evaluation.reliability.to_dict("records")
    assert (ninety["from"], ninety["answers"], ninety["right"]) == (0.9, 20, 0.9)
    assert ninety["low"] < 0.9 < ninety["high"]
    assert (sure["to"], sure["answers"]) == (1.0, 1)
    assert evaluation.figure().to_dict()["layer"]


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (9, 10), (150, 300)])
def test_the_interval_of_a_share_solves_wilsons_equation(hits: int, trials: int) -> None:
    found = Interval.of_share(hits, trials)
    for edge in (found.low, found.high):
        assert abs(found.mean - edge) == pytest.approx(
            1.959964 * (edge * (1 - edge) / trials) ** 0.5, abs=1e-6
        )


def test_attempts_are_kept_and_not_repeated(tmp_path: Path) -> None:
    kept, said = tmp_path / "a.jsonl", list[str]()

    def listen(fraction: float, attempt: str) -> None:
        said.append(attempt)

    two = probe_eval(3, 2, jobs=1, out=kept, on_progress=listen, **QUICK)
    assert len(said) == len(kept.read_text().splitlines()) == 2
    with kept.open("a") as file:
        file.write('{"assignment": {"se')  # a kill cut this line short
    four = probe_eval(3, 4, jobs=1, out=kept, on_progress=listen, **QUICK)
    assert len(said) == 4
    assert isinstance(two, ZooEvaluation)
    assert isinstance(four, ZooEvaluation)
    assert four.attempts[:2] == two.attempts
    assert len(read_attempts(kept)) == 4
    assert probe_eval(3, 4, jobs=1, out=kept, **QUICK) == four
    (tmp_path / "b.txt").write_text("my only copy\n")
    with pytest.raises(InputError, match="something else than attempts"):
        probe_eval(3, 1, out=tmp_path / "b.txt", **QUICK)
    assert (tmp_path / "b.txt").read_text() == "my only copy\n"


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    alone = probe_eval(4, 3, jobs=1, **QUICK)
    pair = probe_eval(4, 3, jobs=2, **QUICK, figure=tmp_path / "a.svg")
    assert isinstance(alone, ZooEvaluation)
    assert isinstance(pair, ZooEvaluation)
    assert [replace(each, seconds=0.0) for each in alone.attempts] == [
        replace(each, seconds=0.0) for each in pair.attempts
    ]
    assert "<svg" in (tmp_path / "a.svg").read_text()[:500]


def test_options_that_make_no_sense_get_a_sentence(tmp_path: Path) -> None:
    for options, sentence in (
        ({"tasks": 0}, "tasks is 0"),
        ({"tasks": 2.5}, "tasks is 2.5"),
        ({"first": -1}, "first is -1"),
        ({"jobs": 0}, "jobs is 0"),
        ({"samples": "many"}, "samples is 'many'"),
        ({"data": False, "function": False}, "not on nothing"),
        ({"out": tmp_path / "a.jsonl"}, "belong to zoo"),
        ({"zoo": True, "out": tmp_path / "none" / "a.jsonl"}, "there is no folder"),
        ({"zoo": True, "out": tmp_path}, "is a folder"),
        ({"zoo": True, "figure": tmp_path / "a.txt"}, "the figure is a"),
    ):
        with pytest.raises(InputError, match=sentence):
            probe_eval(1, **options)  # type: ignore[arg-type]


def test_a_line_is_added_after_one_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append_line(path, "one")
    with path.open("a") as file:
        file.write("tw")
    append_line(path, "three")
    assert path.read_text() == "one\ntw\nthree\n"
