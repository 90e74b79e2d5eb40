"""The rank studies: claims are functions of the table, reports draw everything on one figure."""

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from headwise.cli import main
from headwise.core.errors import InputError
from headwise.lab.kinds import kind_of
from headwise.nets import EncoderShape
from headwise.studies import STUDIES
from headwise.studies.rank import rank_one_claims as features
from headwise.studies.rank import shared
from headwise.studies.rank.in_context import many_heads_hurt
from headwise.studies.rank.points import finding as points_finding

sys.path.insert(0, str(Path(__file__).parent))
RANK = [name for name in STUDIES if name.startswith("rank-")]


def errors(
    table: dict[tuple[int, int, int, int], float], dim: int = 8, positions: str = "none"
) -> pd.DataFrame:
    """A result table from (points, layers, modules, rank) → error; a worse second seed beside."""
    rows = [
        {
            "part": "p",
            "dim": dim,
            "points": points,
            "positions": positions,
            "layers": layers,
            "modules": modules,
            "rank": rank,
            "rank_share": rank / dim,
            "seed": seed,
            "error": error * (1 + seed),
        }
        for (points, layers, modules, rank), error in table.items()
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


GOOD = {(8, 1, 1, 1): 0.9, (8, 1, 1, 4): 0.5, (8, 1, 1, 8): 0.05}


def test_full_rank_must_be_five_times_better() -> None:
    assert shared.full_rank_wins(errors(GOOD)).status == "holds"
    assert shared.rank_finding(errors(GOOD)).conclusive
    close = errors({**GOOD, (8, 1, 1, 8): 0.2})
    assert shared.full_rank_wins(close).status == "does not hold"
    assert "2.5×" in shared.full_rank_wins(close).numbers
    assert not shared.rank_finding(close).conclusive
    deep_only = errors({(8, 2, 1, 4): 0.5, (8, 2, 1, 8): 0.05})
    assert shared.full_rank_wins(deep_only).status == "not tested"


def test_guessing_at_every_rank_is_no_sign_that_rank_costs_nothing() -> None:
    guesses = {(points, 1, 1, rank): 1.05 for points in (4, 16) for rank in (4, 8)}
    assert shared.full_rank_wins(errors(guesses)).status == "not tested"
    assert not shared.rank_finding(errors(guesses)).conclusive
    assert not points_finding(errors(guesses)).conclusive
    learnt = dict.fromkeys(guesses, 0.2)
    assert points_finding(errors(learnt)).conclusive  # there, half the rank does cost nothing


def test_the_error_must_fall_with_the_rank() -> None:
    assert shared.falls_with_rank(errors(GOOD)).status == "holds"
    bumpy = errors({**GOOD, (8, 1, 1, 2): 0.3})
    assert shared.falls_with_rank(bumpy).status == "does not hold"
    alone = errors({(8, 1, 1, 1): 0.9})  # as while a study runs
    assert shared.falls_with_rank(alone).status == "not tested"


def test_more_heads_must_not_buy_it_back() -> None:
    assert shared.heads_do_not_buy_it_back(errors(GOOD)).status == "not tested"
    many = {**GOOD, (8, 1, 8, 4): 0.3, (8, 1, 8, 8): 0.02}
    assert shared.heads_do_not_buy_it_back(errors(many)).status == "holds"
    bought = errors({**many, (8, 1, 8, 4): 0.04})
    assert shared.heads_do_not_buy_it_back(bought).status == "does not hold"


def test_a_rank_that_costs_nothing_is_not_said_to_cost() -> None:
    """Half the rank below full rank, at few points and at many."""
    errors = {(4, 1.0): 0.2, (4, 0.5): 0.02, (16, 1.0): 0.2, (16, 0.5): 0.06}
    rows = [
        {"dim": 8, "points": points, "modules": 1, "layers": 1, "rank_share": share}
        | {"rank": 8 * share, "error": error}
        for (points, share), error in errors.items()
    ]
    table = pd.DataFrame(rows)
    assert STUDIES["rank-points"].finding(table).sentence.startswith("No: half the rank costs")
    assert "half rank is 10.0× below full rank" in STUDIES["rank-depth"].finding(table).sentence


def test_depth_must_help_at_small_n_only() -> None:
    helps = {(3, 1, 1, 4): 0.4, (3, 2, 1, 4): 0.2, (16, 1, 1, 4): 0.6, (16, 2, 1, 4): 0.6}
    assert shared.depth_helps_at_small_n(errors(helps)).status == "holds"
    everywhere = {**helps, (16, 2, 1, 4): 0.2}
    assert shared.depth_helps_at_small_n(errors(everywhere)).status == "does not hold"
    nowhere = {**helps, (3, 2, 1, 4): 0.4}
    assert shared.depth_helps_at_small_n(errors(nowhere)).status == "does not hold"
    assert shared.depth_helps_at_small_n(errors(GOOD)).status == "not tested"


def features_table(trained: float, measured: float) -> pd.DataFrame:
    common = {"dim": 16, "rank": 1, "layers": 1, "seed": 0}
    return pd.DataFrame(
        [
            {**common, "part": "trained", "heads": 16, "error": trained},
            {
                **common,
                "part": "random-features",
                "heads": 64,
                "error": measured,
                "expected": 0.25,
                "standard_error": 0.002,
            },
        ]
    )


def test_layers_are_held_against_the_lower_bound() -> None:
    fine = features_table(0.175, 0.251)
    for claim in (features.never_below_the_bound, features.near_the_bound):
        assert claim(fine).status == "holds"
    assert features.closed_form_is_right(fine).status == "holds"
    assert features.never_below_the_bound(features_table(0.15, 0.251)).status == "does not hold"
    assert features.near_the_bound(features_table(0.3, 0.251)).status == "does not hold"
    assert features.closed_form_is_right(features_table(0.175, 0.3)).status == "does not hold"
    assert features.bound(16, 16) == pytest.approx(0.170, abs=0.001)


def test_the_published_trained_layers_respect_the_bound() -> None:
    """0.172 and 0.180 (authors' sweep), three digits, at d = H = 16 and 32."""
    published = features.published()
    trained = published[published["part"] == "trained"]
    assert len(trained) == 2
    for row in trained.to_dict("records"):
        assert features.bound(row["dim"], row["heads"]) <= row["error"] + 0.0005


def test_many_heads_hurt_in_the_published_numbers() -> None:
    published = STUDIES["rank-in-context"].published()
    assert many_heads_hurt(published.assign(seed=0)).status == "holds"


def test_the_published_figure_1_agrees_with_the_claims() -> None:
    published = STUDIES["rank-depth"].published().assign(positions="none", seed=0)
    assert shared.full_rank_wins(published).status == "holds"
    assert shared.falls_with_rank(published).status == "holds"
    assert shared.heads_do_not_buy_it_back(published).status == "holds"


@pytest.mark.parametrize("name", RANK)
def test_every_tier_is_made_of_runs_that_differ_and_prices_are_stated(name: str) -> None:
    study = STUDIES[name]
    for tier in study.tiers.values():
        runs = list(itertools.chain(*tier.parts().values()))
        assert len({run.key for run in runs}) == len(runs)
        assert "CPU" in tier.price
        assert set(tier.parts()) <= set(study.parts)


@pytest.mark.parametrize("name", ["rank-depth", "rank-points", "rank-dimension"])
@pytest.mark.parametrize("tier", ["quick", "standard", "full"])
def test_ranks_are_compared_at_equal_parameters(name: str, tier: str) -> None:
    sizes: dict[object, set[int]] = {}
    for runs in STUDIES[name].tiers[tier].parts().values():
        for run in runs:
            net: EncoderShape = run.net
            key = (run.task, net.modules, len(net.layers), net.ffn)
            sizes.setdefault(key, set()).add(net.params()["total"])
    assert all(len(params) == 1 for params in sizes.values())


@pytest.mark.parametrize(
    ("study", "figure", "references"),
    [
        ("tiny_rank_study:TINY_DEPTH", "depth", {"published, d = 64, N = 16, L = 1"}),
        (
            "tiny_rank_study:TINY_FEATURES",
            "heads",
            {"lower bound, values a·I", "published, random features"},
        ),
    ],
)
def test_a_report_has_runs_and_references_on_the_same_axes(
    study: str, figure: str, references: set[str], tmp_path: Path
) -> None:
    store = str(tmp_path / "a.db")
    arguments = ["study", "run", study, "--store", store, "--report", str(tmp_path), "--jobs", "1"]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert not stopped.value.code
    (path,) = tmp_path.glob(f"*-{figure}.csv")
    drawn = pd.read_csv(path)
    assert references <= set(drawn["label"].dropna())
    assert drawn["panel"].notna().all()
    ours = drawn[drawn["source"] == "this run"]
    assert ours["error_min"].between(0, 3).all()
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text()
    assert "answering zero scores 1" in page


def test_a_run_needs_a_training_that_fits_its_network() -> None:
    streamed = next(iter(STUDIES["rank-depth"].tiers["quick"].parts().values()))[0]
    fixed = next(iter(STUDIES["head-count"].tiers["quick"].parts().values()))[0]
    with pytest.raises(InputError, match="'tokens' has as its training Streaming, not Training"):
        kind_of(replace(streamed, training=fixed.training))
    with pytest.raises(
        InputError, match="as its net EncoderShape or AttentionNetShape, not Streaming"
    ):
        kind_of(replace(streamed, net=streamed.training))
    with pytest.raises(InputError, match="'tokens' has as its measure None, not Training"):
        kind_of(replace(streamed, measure=fixed.training))
    with pytest.raises(InputError, match=r"no kind of run is called 'none'; there are .*built, "):
        kind_of(replace(streamed, kind="none"))


@pytest.mark.parametrize(("at_half", "notes"), [(1.02, []), (8.0, ["8.0× below half rank"])])
def test_only_a_difference_is_written_into_the_figure(at_half: float, notes: list[str]) -> None:
    like = {"part": "main", "dim": 8, "points": 4, "positions": 0, "modules": 1, "power": 1}
    rows = [(0.5, at_half), (1.0, 1.0)]
    ours = pd.DataFrame([{**like, "layers": 1, "rank_share": r, "error_min": e} for r, e in rows])
    assert shared.drop_notes(ours)["label"].tolist() == notes
