"""The studies on real data: matched arms, claims that can fail, the published fit, own data."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from headwise.cli import main
from headwise.core.errors import InputError
from headwise.studies import STUDIES, run_study
from headwise.studies.published import published_tables
from headwise.studies.real_data import claims
from headwise.studies.real_data.arms import FIXED_HEADS, FIXED_WIDTH, GROWING
from headwise.studies.real_data.effects import effect, effect_points, effects_of_heads
from headwise.studies.real_data.fit import fit_decay

CONCLUDE = claims.finding("Data: {data}.", "more seeds")


def table(accuracy: Callable[[int, int, int], float], noise: float = 0.01) -> pd.DataFrame:
    """A result table in which accuracy is a function of heads, width and length."""
    rng = np.random.default_rng(0)
    shapes = {
        GROWING: [(h, 8 * h) for h in (1, 2, 4, 8)],
        FIXED_WIDTH: [(h, 32) for h in (1, 2, 4, 8)],
        FIXED_HEADS: [(4, 8 * h) for h in (1, 2, 4, 8)],
    }
    rows = []
    for part, length, seed in product(shapes, (8, 16, 32), range(4)):
        for heads, width in shapes[part]:
            right = float(np.clip(accuracy(heads, width, length) + rng.normal(0, noise), 0, 1))
            rows.append(
                {
                    "part": part,
                    "data": "made up",
                    "length": length,
                    "seed": seed,
                    "heads": heads,
                    "total_width": width,
                    "train_examples": 1_000,
                    "error": 1 - right,
                    "train_accuracy": right,
                    "train_mrr": (1 + right) / 2,
                    "held_out_accuracy": 0.3 + rng.normal(0, noise),
                    "held_out_mrr": 0.5,
                }
            )
    return pd.DataFrame(rows)


def by_width(heads: int, width: int, length: int) -> float:
    return 0.2 + 0.2 * np.log2(width / 8) - 0.02 * np.log2(length)


def by_heads(heads: int, width: int, length: int) -> float:
    return 0.2 + 0.2 * np.log2(heads) - 0.02 * np.log2(length)


def test_where_only_width_helps_the_answer_is_width() -> None:
    results = table(by_width)
    found = CONCLUDE(results)
    assert found.value == 0
    assert found.sentence.startswith("Width, more than heads")
    assert "made up" in found.sentence
    assert claims.rises_with_heads(results).status == "holds"
    assert claims.width_matters(results).status == "holds"
    assert claims.heads_matter(results).status in ("does not hold", "cannot tell")
    assert claims.falls_with_length(results).status == "holds"
    assert claims.no_transition_held_out(results).status == "holds"
    assert claims.mrr_alike(results).status == "holds"


def test_where_both_help_the_answer_does_not_deny_heads() -> None:
    """Also where heads help in the middle of their range only."""

    def both(heads: int, width: int, length: int) -> float:
        return by_width(heads, width, length) + 0.1 * np.log2(heads)

    def peak(heads: int, width: int, length: int) -> float:
        return by_width(heads, width, length) + (0.1 if heads in (2, 4) else 0)

    for accuracy, value, answer, share in (
        (both, 2, "Both heads and width", "50 %"),
        (peak, 0, "Width, more than heads", "0 %"),
    ):
        results = table(accuracy, noise=0.0001)
        found = CONCLUDE(results)
        assert found.value == value
        assert found.sentence.startswith(f"{answer}: at fixed width, heads give {share}")
        assert claims.heads_matter(results).status == "holds"


def test_where_only_heads_help_the_answer_is_heads() -> None:
    results = table(by_heads)
    found = CONCLUDE(results)
    assert found.value == 1
    assert found.sentence.startswith("Heads, more than width")
    assert claims.heads_matter(results).status == "holds"
    assert claims.width_matters(results).status != "holds"


def test_a_best_number_of_heads_in_the_middle_is_seen() -> None:
    """One head and eight are equal, and heads matter all the same."""

    def peak(heads: int, width: int, length: int) -> float:
        return by_width(heads, width, length) + (0.1 if heads in (2, 4) else 0)

    assert claims.heads_matter(table(peak)).status == "holds"
    assert set(effects_of_heads(table(peak))) == {2, 4, 8}


def test_where_noise_rules_nothing_is_claimed() -> None:
    results = table(lambda *_: 0.5, noise=0.2)
    found = CONCLUDE(results)
    assert found.value is None
    assert found.settled_by == "more seeds"
    assert claims.rises_with_heads(results).status != "does not hold"
    assert claims.heads_matter(results).status == "cannot tell"


def test_heads_that_do_nothing_are_said_not_to_matter() -> None:
    assert claims.heads_matter(table(by_width, noise=0.001)).status == "does not hold"


def test_falling_accuracy_refutes() -> None:
    results = table(lambda h, w, t: 0.9 - 0.1 * np.log2(h) + 0.05 * np.log2(t / 8))
    assert claims.rises_with_heads(results).status == "does not hold"
    assert claims.falls_with_length(results).status == "does not hold"


def test_one_seed_tells_nothing() -> None:
    results = table(by_width)
    results = results[results["seed"] == 0]
    assert CONCLUDE(results).value is None
    assert claims.rises_with_heads(results).status == "cannot tell"


def test_unlike_changes_are_not_compared() -> None:
    """As after an interrupted run, which has the wide networks only."""
    results = table(by_width)
    for missing in (results["total_width"] < 16, results["length"].eq(8) & (results["heads"] == 1)):
        found = CONCLUDE(results[~missing])
        assert found.value is None
        assert found.settled_by == "finishing the study"


def test_effects_have_the_size_that_was_put_in() -> None:
    results = table(by_width, noise=0.001)
    assert effect(results, FIXED_HEADS).interval.mean == pytest.approx(0.6, abs=0.005)  # type: ignore[union-attr]
    assert effect(results, FIXED_WIDTH).interval.mean == pytest.approx(0.0, abs=0.005)  # type: ignore[union-attr]
    points = effect_points(results)
    assert len(points) == 3 * 2 * 3
    assert effect(results.iloc[:0], GROWING) is None


def test_the_published_table_gives_the_published_fit() -> None:
    """The paper: α = −1.40, δ = 0.25, fitted without 1, 12, 14 and 16 heads."""
    table6 = published_tables({GROWING: "head_count_table6.csv"})
    found = fit_decay(table6[~table6["heads"].isin(claims.LEFT_OUT)])
    assert found is not None
    assert found.alpha == pytest.approx(claims.PUBLISHED_ALPHA, abs=0.1)
    assert found.delta == pytest.approx(claims.PUBLISHED_DELTA, abs=0.05)


def test_a_fit_finds_what_was_put_in_and_says_when_it_cannot() -> None:
    def decay(heads: int, width: int, length: int) -> float:
        return 1 - 0.5 * length**0.1 * np.exp(-0.6 * heads / length**0.3)

    found = fit_decay(table(decay, noise=0.0005).query("part == 'growing'"))
    assert found is not None
    assert found.identified
    assert found.alpha_range[0] - 0.1 <= -0.6 <= found.alpha_range[1] + 0.1
    assert abs(found.delta - 0.3) < 0.15
    flat = fit_decay(table(lambda *_: 0.5, noise=0.05).query("part == 'growing'"))
    assert flat is not None
    assert not flat.identified
    assert fit_decay(table(decay).query("length < 32 and part == 'growing'")) is None


@pytest.mark.parametrize("name", ["images", "text-ranking"])
@pytest.mark.parametrize("tier", ["quick", "standard", "full"])
def test_arms_are_matched_and_share_their_runs(name: str, tier: str) -> None:
    parts = STUDIES[name].tiers[tier].parts()
    sizes = {(run.task.length, run.net.params()["total"]) for run in parts[FIXED_WIDTH]}
    assert len(sizes) == len({run.task.length for run in parts[FIXED_WIDTH]})
    assert len({run.net.width for run in parts[FIXED_WIDTH]}) == 1
    assert len({run.net.layers[0].heads for run in parts[FIXED_HEADS]}) == 1
    assert len({run.net.layers[0].qk_dim for run in parts[GROWING]}) == 1
    ends = [
        {max(each) / min(each) for each in [{value(run) for run in parts[arm]}]}
        for arm, value in (
            (FIXED_WIDTH, lambda run: run.net.layers[0].heads),
            (FIXED_HEADS, lambda run: run.net.width),
            (GROWING, lambda run: run.net.width),
        )
    ]
    assert ends[0] == ends[1] == ends[2]  # every arm multiplies by the same factor
    keys = [run.key for part in parts.values() for run in part]
    assert tier == "full" or len(set(keys)) < len(keys)
    trainings = {run.training for part in parts.values() for run in part}
    assert len(trainings) == 1


def test_published_tables_hold_what_the_paper_prints() -> None:
    text, images = (published_tables({GROWING: f"head_count_table{n}.csv"}) for n in (6, 8))
    place = (text["heads"] == 4) & (text["length"] == 64)
    assert text[place]["error"].item() == pytest.approx(1 - 0.58)
    place = (images["heads"] == 8) & (images["frame"] == 48)  # T = 145 with patches of 4
    assert images[place]["error"].item() == pytest.approx(1 - 0.926)


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for index in range(20):
            pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{index}.png")
    return tmp_path / "pictures"


def test_a_study_runs_on_data_of_ones_own(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, store = "tiny_real_data:TINY", tmp_path / "r.db"
    command = ["study", "run", address, "--data", str(pictures), "--store", str(store)]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--jobs", "1", "--json", "--report", str(tmp_path / "page")])
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["finding"].endswith("Images: pictures.")
    assert len(said["claims"]) == 5
    assert (tmp_path / "page" / "report.html").is_file()


def test_what_has_no_data_says_so(pictures: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no data of its own to replace"):
        run_study("head-count", data=pictures, store=tmp_path / "r.db")
    with pytest.raises(InputError, match="headwise study fetch images"):
        run_study("images", store=tmp_path / "r.db")
    with pytest.raises(InputError, match="headwise study fetch text-ranking"):
        run_study("text-ranking", store=tmp_path / "r.db")
    with pytest.raises(InputError, match="there is no folder"):
        run_study("images", data=tmp_path / "nowhere", store=tmp_path / "r.db")
