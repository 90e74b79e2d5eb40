"""The studies of allocation: equal budgets, claims that can fail, own texts, a killed run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headwise.allocation.plan_file import AllocationPlan, write_allocation
from headwise.cli import main
from headwise.core.errors import InputError
from headwise.core.intervals import Interval
from headwise.studies import STUDIES
from headwise.studies.allocation import claims
from headwise.studies.allocation.ngram_heads import best_heads, eight_are_best, one_lag_a_head
from headwise.studies.allocation.schedules import SIZES, parts_of_files
from headwise.studies.differences import best_group, paired, pooled
from headwise.tasks import corpus


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    corpus.tokens.cache_clear()
    yield
    corpus.tokens.cache_clear()


def some_text(tmp_path: Path) -> Path:
    path = tmp_path / "sums.txt"
    path.write_text(" ".join(f"{n} and {n + 1} make {2 * n + 1}." for n in range(1500)))
    return path


@pytest.mark.parametrize("tier", ["quick", "standard", "full"])
def test_schedules_spend_equally_and_differ(tier: str) -> None:
    """Within 1 % of the attention parameters; equal tokens, feed-forward networks and width."""
    parts = STUDIES["allocation"].tiers[tier].parts()
    runs = [run for part in parts.values() for run in part]
    spent = {run.net.params()["attention"] for run in runs}
    assert max(spent) <= SIZES[tier].budget
    assert min(spent) >= 0.99 * SIZES[tier].budget
    assert len({(run.net.width, run.net.ffn, run.training) for run in runs}) == 1
    named = [run for name, part in parts.items() if name != "plan" for run in part]
    assert len({run.key for run in named}) == len(named)  # a plan may choose one of them
    seeds = {(run.task.name, run.net.qk_norm, run.seed) for run in runs}
    assert len(seeds) == 2 * 2 * SIZES[tier].seeds


@pytest.mark.parametrize("tier", ["quick", "standard", "full"])
def test_head_counts_are_compared_at_equal_parameters(tier: str) -> None:
    parts = STUDIES["ngram-heads"].tiers[tier].parts()
    spent = {run.net.params()["attention"] for part in parts.values() for run in part}
    assert len(spent) == 1
    assert {8, 32} <= {run.net.layers[0].heads for part in parts.values() for run in part}


def table(losses: dict[str, float], noise: float = 0.001, seeds: int = 4) -> pd.DataFrame:
    """A result table in which seeds share their luck, and schedules have these losses."""
    rng = np.random.default_rng(0)
    rows = []
    for text, qk_norm in product(("plays", "news"), (False, True)):
        luck = rng.normal(0, 0.1, seeds)
        for (part, loss), seed in product(losses.items(), range(seeds)):
            error = loss + luck[seed] + rng.normal(0, noise)
            arm = f"{text}, QK-norm" if qk_norm else text
            rows.append(
                {
                    "part": part,
                    "text": text,
                    "arm": arm,
                    "qk_norm": qk_norm,
                    "seed": seed,
                    "error": error,
                }
            )
    return pd.DataFrame(rows)


def test_a_recommendation_that_loses_is_named_in_the_first_words() -> None:
    lost = table({"uniform": 2.0, "early-heavy": 2.02, "plan": 1.99})
    assert claims.beats_uniform("early-heavy")(lost).status == "does not hold"
    assert claims.no_worse_than_uniform("early-heavy")(lost).status == "does not hold"
    sentence = claims.finding(lost).sentence
    assert sentence.startswith("The paper's recommendation, early-heavy, loses to uniform on news")
    assert claims.plan_is_as_good(lost).status == "holds"


def test_a_recommendation_that_wins_or_cannot_be_told_is_said_to() -> None:
    won = table({"uniform": 2.0, "early-heavy": 1.98, "plan": 2.0})
    assert claims.beats_uniform("early-heavy")(won).status == "holds"
    assert "beats uniform" in claims.finding(won).sentence
    assert claims.finding(won).value == 4
    verdict = claims.plan_is_as_good(won)
    assert verdict.status == "does not hold"
    assert "Worse than early-heavy" in verdict.numbers
    open_ = table({"uniform": 2.0, "early-heavy": 2.0}, noise=0.01)
    assert "is not told apart" in claims.finding(open_).sentence
    assert claims.plan_is_as_good(open_).status == "not tested"
    assert claims.beats_uniform("early-heavy")(open_).status == "cannot tell"
    assert claims.no_worse_than_uniform("early-heavy")(open_).status in ("cannot tell", "holds")
    close = table({"uniform": 2.0, "early-heavy": 2.0}, noise=0.0005)
    assert claims.no_worse_than_uniform("early-heavy")(close).status == "holds"
    assert claims.beats_uniform("rising")(close).status == "not tested"
    one_seed = table({"uniform": 2.0, "early-heavy": 1.0}, seeds=1)
    assert claims.beats_uniform("early-heavy")(one_seed).status == "cannot tell"


def test_pairs_are_compared_seed_by_seed() -> None:
    """Luck that seeds share is ten times the difference, and does not hide it."""
    one = table({"uniform": 2.0, "rising": 2.01}).query("arm == 'plays'")
    gap = paired(one, "rising", "uniform")
    assert gap is not None
    assert gap.sign == "worse"
    assert gap.low < 0.01 < gap.high
    assert Interval.of(np.array([1.0])).sign == "not told apart"
    over_all = pooled(table({"uniform": 2.0, "rising": 2.01}), "rising", "uniform", "qk_norm")
    assert over_all is not None
    assert over_all.seeds == 2 * 4  # texts × seeds: the two arms of each are one
    assert over_all.low < 0.01 < over_all.high
    assert over_all.high - over_all.low < gap.high - gap.low


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    found = [Interval.of(rng.normal(0.3, 1, 4)) for _ in range(2000)]
    assert np.mean([each.low < 0.3 < each.high for each in found]) == pytest.approx(0.95, abs=0.02)


def ngram_table(errors: dict[int, tuple[float, ...]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"target": "linear", "qk_norm": False, "heads": heads, "head_dim": 32 // heads,
             "seed": seed, "error": error, "part": "plain"}
            for heads, found in errors.items()
            for seed, error in enumerate(found)
        ]
    )  # fmt: skip


def test_head_counts_that_cannot_be_told_apart_are_a_group() -> None:
    results = ngram_table(
        {4: (0.01, 0.011, 0.0105), 8: (0.009, 0.012, 0.0107), 32: (0.3, 0.31, 0.3)}
    )
    best, group = best_group(results, "heads")
    assert best in (4, 8)
    assert group == [4, 8]
    assert eight_are_best(results).status == "holds"
    assert eight_are_best(results[results["heads"] != 8]).status == "not tested"
    assert best_heads(ngram_table({4: (0.99, 0.98), 8: (0.97, 0.99)})) == {}  # nothing was learnt


def test_the_least_error_of_few_heads_is_that_of_the_lags_they_reach() -> None:
    drawn = one_lag_a_head(ngram_table({1: (1.0,), 2: (1.0,), 4: (1.0,), 32: (1.0,)}))
    assert dict(zip(drawn["heads"], drawn["error_min"], strict=True)) == pytest.approx(
        {1: 0.5, 2: 0.25}
    )


def test_least_errors_that_lie_on_one_another_are_one_line() -> None:
    table = ngram_table({1: (1.0,), 2: (1.0,)})
    names = ("linear", "tanh", "bilinear")
    drawn = one_lag_a_head(pd.concat([table.assign(target=name) for name in names]))
    labels = [f"least error, one lag a head: {name}" for name in ("linear or tanh", "bilinear")]
    assert drawn.groupby("label")["heads"].apply(list).to_dict() == {
        label: [1, 2] for label in labels
    }


def test_own_texts_and_plans(tmp_path: Path) -> None:
    text, size = some_text(tmp_path), SIZES["quick"]
    layers = size.schedules()["rising"]
    plan = AllocationPlan(
        width=size.width, length=size.length, layers=layers, budget=size.budget, schedule="rising",
        reasons=("a test",),
    )  # fmt: skip
    write_allocation(plan, tmp_path / "plan.json")
    parts = parts_of_files("quick", [text], [tmp_path / "plan.json"])
    assert {run.net.layers for run in parts["plan"]} == {layers}
    assert {run.task.name for part in parts.values() for run in part} == {"sums"}
    assert "plan" not in parts_of_files("quick", [text], [])
    with pytest.raises(InputError, match="this tier has 6 layers of width 64"):
        parts_of_files("standard", [text], [tmp_path / "plan.json"])
    with pytest.raises(InputError, match="the same name"):
        parts_of_files("quick", [text, text], [])
    with pytest.raises(InputError, match="one for each of the 2"):
        parts_of_files("quick", [], [tmp_path / "plan.json"] * 3)
    (tmp_path / "short.txt").write_text("x" * 1000)
    with pytest.raises(InputError, match="too few for a length of 256"):
        parts_of_files("full", [tmp_path / "short.txt"], [])


def test_a_text_that_is_not_here_gets_a_sentence(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    store = str(tmp_path / "a.db")
    with pytest.raises(SystemExit) as stopped:
        main(["study", "run", "allocation", "--store", store, "--jobs", "1"])
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is not on this machine" in said
    assert "headwise study fetch" in said
    with pytest.raises(SystemExit) as stopped:
        main(["study", "run", "head-count", "--text", str(some_text(tmp_path)), "--store", store])
    assert stopped.value.code == 2


def run_study(name: str, tmp_path: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headwise", "study", "run", name, "--jobs", "1"]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.Popen(
        [*command, *options], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )  # fmt: skip


def test_a_study_on_own_text_reports_and_survives_a_kill(tmp_path: Path) -> None:
    """Killed while a run is under way, it goes on; the page shows every schedule and arm."""
    text = str(some_text(tmp_path))
    options = ("--text", text, "--store", "a.db")
    first = run_study("tiny_allocation_study:TINY", tmp_path, *options)
    deadline = time.monotonic() + 120
    while not (tmp_path / "a.db").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(3)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    again = run_study("tiny_allocation_study:TINY", tmp_path, *options, "--report", "out", "--json")
    answer = json.loads(again.communicate()[0])
    assert again.returncode == 0
    assert answer["finding"].startswith("The paper's recommendation, early-heavy")
    drawn = pd.read_csv(next((tmp_path / "out").glob("*-loss.csv")))
    assert set(drawn["label"]) == {"uniform", "early-heavy"}
    assert set(drawn["group"]) == {"with QK-norm", "without QK-norm"}
    assert (drawn["low"] <= drawn["mean"]).all()
    assert next((tmp_path / "out").glob("*-difference.png")).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "nats a byte" in page
    assert not (tmp_path / "a.db.unfinished").exists()


def test_equal_is_more_than_not_told_apart() -> None:
    same = {"uniform": 2.0, "early-heavy": 2.001, "rising": 1.999}
    assert claims.all_equal_to_uniform(table(same)).status == "holds"
    assert claims.all_equal_to_uniform(table(same, noise=0.05)).status == "cannot tell"
    assert claims.all_equal_to_uniform(table(same, seeds=1)).status == "cannot tell"
    apart = claims.all_equal_to_uniform(table({**same, "rising": 2.1}))
    assert apart.status == "does not hold"
    assert "rising (plays)" in apart.numbers
