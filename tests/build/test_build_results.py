"""Results print, are drawn, and go to pandas; the commands only show them."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
import torch

from headwise import build
from headwise.build.built import Built
from headwise.core.errors import InputError
from headwise.core.lazy import Drawn
from headwise.core.shown import Tabled
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.studies.head_count.witnesses import trained_witnesses
from headwise.tasks import max_plus_min, sum_of_maxima
from headwise.theory.head_count import phase_map

TASK = sum_of_maxima(5, intrinsic_dim=2, token_dim=2)


@pytest.fixture(scope="module")
def results() -> dict[str, Drawn]:
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=2, heads=1), seed=0)
    return {
        "built": build.retrieval(TASK, 0.1),
        "wide": build.memorise(max_plus_min(4), 0.2),
        "frontier": build.frontier([16], errors=(0.1, 0.05)),
        "trials": build.trials(count=4, seconds=0.01, seed=1),
        "witness": build.witness(net, TASK, steps=5, starts=4),
        "comparison": build.compare_witnesses({"random": {1: net}}, TASK, steps=5, starts=4),
        "phase map": phase_map([1, 2, 4], [8, 64], intrinsic_dim=4, head_dim=2),
        "silent map": phase_map([4], [8], intrinsic_dim=4, head_dim=2),
    }


def test_every_result_is_drawn_and_written(results: dict[str, Drawn], tmp_path: Path) -> None:
    for name, result in results.items():
        path = tmp_path / f"{name}.svg"
        assert isinstance(result.figure(path), alt.TopLevelMixin), name
        assert "<svg" in path.read_text()[:200], name


def test_every_table_goes_to_pandas_and_to_json(results: dict[str, Drawn]) -> None:
    tables = {name: each for name, each in results.items() if isinstance(each, Tabled)}
    assert len(tables) == 5
    for name, each in tables.items():
        table = each.to_pandas()
        assert len(table) == len(each.records()) > 0, name
        again = pd.DataFrame(json.loads(each.to_json()))
        assert again.columns.tolist() == table.columns.tolist(), name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("built", ["certified sup-norm error: 0.09", "2 heads of dimension 2", "parameters"]),
        ("wide", ["levels of the extrema", "1 heads of dimension 4"]),
        (
            "frontier",
            ["three bowls (D = 3)", "counted", "5.0e-02", "one wide head takes", "does not apply"],
        ),
        ("trials", ["4 of 4 certificates hold; the closest attack reached"]),
        ("witness", ["every readout with Lipschitz constant up to"]),
        ("comparison", ["random", "forced / σ", "readout's L ≤"]),
        ("phase map", ["T = 64", "enough", "–", "|S_i| ≥ 0.25·T"]),
    ],
)
def test_results_print(results: dict[str, Drawn], name: str, words: list[str]) -> None:
    text = str(results[name])
    assert [word for word in words if word not in text] == []


def test_progress_only_grows_and_ends_at_one() -> None:
    heard: list[float] = []

    def listen(fraction: float, doing: str) -> None:
        assert doing
        heard.append(fraction)

    def parts() -> Iterator[object]:
        yield build.frontier([4, 8], errors=(0.1, 0.05), on_progress=listen)
        yield build.trials(count=3, seconds=0.01, on_progress=listen)
        yield build.retrieval(TASK, 0.1).certificate.attack(seconds=0.05, on_progress=listen)
        yield trained_witnesses(TASK, [1, 2], steps=20, seeds=1, search_steps=4, on_progress=listen)

    for _ in parts():
        assert heard == sorted(heard)
        assert heard[-1] == pytest.approx(1.0)
        heard.clear()


def test_what_is_broken_is_told(results: dict[str, Drawn]) -> None:
    trials = results["trials"]
    assert isinstance(trials, build.TrialResults)
    assert trials.holds
    rows = [row | {"holds": row["trial"] != 2} for row in trials.records()]
    broken = build.TrialResults(tuple(rows))
    assert not broken.holds
    assert [row["trial"] for row in broken.broken] == [2]
    assert "3 of 4 certificates hold" in str(broken)
    assert "broken: {'trial': 2" in str(broken)


def test_the_attention_of_a_built_network_is_where_the_target_looks() -> None:
    table = build.retrieval(TASK, 0.01).attention(sequences=5, seed=2)
    assert len(table) == 5 * 2 * 5
    winners = table.loc[table.groupby(["sequence", "head"])["weight"].idxmax(), "wanted"]
    assert winners.all()


def test_a_failed_save_leaves_a_sentence(results: dict[str, Drawn], tmp_path: Path) -> None:
    built = results["built"]
    assert isinstance(built, Built)
    (tmp_path / "certificate.json").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*certificate\.json"):
        built.save_pretrained(tmp_path)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_on_a_full_disk_a_folder_is_as_it_was(results: dict[str, Drawn], tmp_path: Path) -> None:
    """A limit on the size of files is what a full disk looks like."""
    built = results["built"]
    assert isinstance(built, Built)
    built.save_pretrained(tmp_path / "old")
    before = {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    largest = max(map(len, before.values()))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 100, largest - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            for name in ("old", "new"):
                with pytest.raises(InputError, match=f"cannot write .*/{name}"):
                    built.save_pretrained(tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [path.name for path in tmp_path.iterdir()] == ["old"]
        assert {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before


def test_printed_certificates_and_witnesses_are_still_bounds() -> None:
    for length in (3, 5, 7, 9, 11):
        task = sum_of_maxima(length=length)
        certificate = build.retrieval(task, temperature=0.0123).certificate
        lines = str(certificate).splitlines()
        assert float(lines[0].split()[3]) >= certificate.error
        for term, line in zip(certificate.terms, lines[1:], strict=False):
            assert float(line.split()[0]) >= term.value
        shape = ClassTokenShape.standard(token_dim=4, heads=1)
        found = build.witness(ClassTokenNet(shape, seed=0), task, starts=4, steps=10)
        text = str(found)
        constant = float(text.split("constant up to ")[1].split()[0])
        assert constant >= found.readout_lipschitz
        forced = float(text.split("errs by at least ")[1].split()[0])
        assert forced <= found.forced_error(constant)


def test_a_very_long_sequence_is_attacked_within_the_time_and_shown_in_part() -> None:
    built = build.retrieval(sum_of_maxima(length=200_000), error=1e-3)
    attack = built.certificate.attack(seconds=1e-9)
    assert attack.tried < 8  # the first inputs of all, no ascent
    assert attack.worst > 0.9 * built.certificate.error
    rows = built.attention(sequences=1)
    assert len(rows) < 1000
    assert rows["wanted"].sum() == 4
    assert rows[rows["wanted"]]["weight"].min() > 0.1


def test_weights_that_are_no_numbers_meet_no_assumption() -> None:
    net = build.retrieval(sum_of_maxima(length=4), error=0.1).net
    with torch.no_grad():
        net.get_parameter("readout.1.bias").fill_(float("nan"))
        net.get_parameter("embed.0.bias").fill_(float("nan"))
    found = {each.name: each.holds for each in build.check_network_assumptions(net)}
    assert found["the readout's entries are at most 1"] is False
    assert found["the embedded tokens have norm at most 1"] is False
