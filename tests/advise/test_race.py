"""The race: it finds who is better, is not flattered by its own choice, and scales as told."""

import numpy as np
import pytest

from headwise.advise.plan.explain import comparison, reasons, rows
from headwise.advise.plan.race import (
    FEWER,
    FEWEST,
    FULL,
    UNIFORM,
    Measure,
    Pair,
    Race,
    Rungs,
    race,
)
from headwise.advise.plan.request import PlanRequest
from headwise.advise.plan.scale import TrialScale, choose_scale
from headwise.lab.crew import Place

NAMES = [UNIFORM, *"abcdefg"]


def noisy(truth: dict[str, float], trial: int, noise: float = 0.01) -> tuple[list[Pair], object]:
    """Losses with an effect of the seed that all share, and one of their own."""
    asked: list[Pair] = []

    def measure(what: str, pairs: list[Pair]) -> dict[Pair, float]:
        asked.extend(pairs)
        losses = {}
        for name, seed in pairs:
            shared = np.random.default_rng([trial, seed]).normal() * 0.1
            own = np.random.default_rng([trial, seed, *name.encode()]).normal() * noise
            losses[name, seed] = 2.0 + truth.get(name, 0.0) + shared + own
        return losses

    return asked, measure


def test_a_clearly_better_candidate_wins_with_its_true_advantage_in_the_interval() -> None:
    covered = 0
    for trial in range(40):
        _, measure = noisy({"c": -0.05, "a": 0.03}, trial)
        found = race(NAMES, measure, Rungs())  # type: ignore[arg-type]
        assert found.winner == "c"
        against = comparison(found)
        covered += against.low <= -0.05 <= against.high
        assert against.high < 0
    assert covered >= 33  # 95 % of 40 is 38


def test_what_is_said_of_the_winner_is_what_its_interval_says() -> None:
    request = PlanRequest(layers=2, width=32, length=16, budget=8192)
    scale = choose_scale(request, vocabulary=256, candidates=8, others=4)
    met = set()
    for trial in range(60):
        _, measure = noisy({}, trial)
        found = race(NAMES, measure, Rungs())  # type: ignore[arg-type]
        if found.winner == UNIFORM or not found.fresh_seeds:
            continue
        against, said = comparison(found), " ".join(reasons(found, scale, NAMES))
        told = against.low > 0, against.high < 0
        met.add(told)
        assert ("cannot be told from uniform" in said) == (told == (False, False))
        assert ("worse than uniform" in said) == (told == (True, False))
    assert (False, False) in met


def test_among_equals_the_interval_is_not_flattered_by_the_choice() -> None:
    """The best of eight equals looks better than it is; on fresh seeds it does not."""
    chosen, fresh = [], []
    for trial in range(60):
        _, measure = noisy({}, trial)
        found = race(NAMES, measure, Rungs())  # type: ignore[arg-type]
        for name in NAMES[1:]:
            seeds = found.seeds(name)
            if found.fresh_seeds and set(found.fresh_seeds) <= set(seeds):
                early = [seed for seed in seeds if seed not in found.fresh_seeds]
                chosen.append(np.mean(found.differences(name, early)))
                fresh.append(np.mean(found.differences(name, found.fresh_seeds)))
    assert np.mean(chosen) < -0.003
    assert abs(float(np.mean(fresh))) < 0.003


def test_halving_asks_for_no_more_runs_than_it_says_and_uniform_always_runs() -> None:
    asked, measure = noisy({"c": -0.05}, 0)
    rungs = Rungs(seeds=(2, 2), enter=(1000, 3), fresh=3)
    found = race(NAMES, measure, rungs)  # type: ignore[arg-type]
    assert len(asked) == len(set(asked)) <= rungs.runs(len(NAMES))
    assert found.seeds(UNIFORM) == list(range(7))
    assert sorted(len(found.seeds(name)) for name in NAMES) == [2, 2, 2, 2, 4, 4, 7, 7]


def test_uniform_wins_where_nothing_is_better() -> None:
    worse = dict.fromkeys("abcdefg", 0.1)
    _, measure = noisy(worse, 0)
    found = race(NAMES, measure, Rungs())  # type: ignore[arg-type]
    assert found.winner == UNIFORM
    assert comparison(found).difference == 0


@pytest.mark.parametrize(("advantage", "winner"), [(-0.1, "c"), (-0.001, UNIFORM)])
def test_when_time_runs_out_only_a_clear_winner_beats_uniform(
    advantage: float, winner: str
) -> None:
    _, measure = noisy({"c": advantage}, 0)

    def until(rounds: int) -> Measure:
        def stops(what: str, pairs: list[Pair]) -> dict[Pair, float]:
            if not what.startswith(tuple(f"round {n}" for n in range(1, rounds + 1))):
                return {}
            return measure(what, pairs)  # type: ignore[operator]

        return stops

    for rounds in (1, 2):
        found = race(NAMES, until(rounds), Rungs())
        assert (found.winner, found.fresh_seeds, found.in_time) == (winner, (), False)
    nothing = race(["a", UNIFORM], until(0), Rungs())
    assert (nothing.winner, nothing.losses, nothing.in_time) == (UNIFORM, {}, False)


@pytest.mark.parametrize(("advantage", "winner"), [(-0.1, "c"), (-0.001, UNIFORM)])
def test_what_a_round_measured_before_the_time_was_over_counts(
    advantage: float, winner: str
) -> None:
    _, measure = noisy({"c": advantage}, 0)

    def half(what: str, pairs: list[Pair]) -> dict[Pair, float]:
        kept = [pair for pair in pairs if pair[0] in (UNIFORM, "a", "b", "c")]
        return measure(what, kept)  # type: ignore[operator]

    found = race(NAMES, half, Rungs())
    assert (found.winner, found.in_time, found.seeds("g")) == (winner, False, [])
    listed = rows(found, dict.fromkeys(NAMES, ()))
    assert [row.name for row in listed if row.against_uniform is None] == list("defg")
    assert comparison(found).seeds == 3


def test_one_difference_decides_nothing() -> None:
    once = Race("a", {("a", 0): 1.0, (UNIFORM, 0): 2.0})
    assert once.against_uniform("a").mean == -1
    assert once.against_uniform("a").sign == "not told apart"
    losses = {("a", seed): 2.0 + seed for seed in (1, 2, 3)}
    losses |= {(UNIFORM, seed): 1.0 for seed in (1, 2, 3)}
    found = Race("a", losses).against_uniform("a")
    assert (found.mean, found.low, found.high) == pytest.approx((3, 3 - 2.484, 3 + 2.484), abs=1e-3)
    assert Race("a", {("a", 0): 1.0}).differences("a", [0]) == []


def scale_of(width: int, length: int, seconds: float) -> TrialScale:
    request = PlanRequest(
        layers=6,
        width=width,
        length=length,
        budget=6 * 4 * width**2,
        seconds=seconds,
        place=Place(jobs=2),
    )
    return choose_scale(request, vocabulary=256, candidates=8, others=4)


def test_more_time_allows_larger_trials_and_with_too_little_the_quickest_begin() -> None:
    times = (600, 6_000, 60_000, 10**7)
    scales = [scale_of(384, 256, seconds) for seconds in times]
    assert all(s.whole_seconds <= seconds for s, seconds in zip(scales, times, strict=True))
    work = [scale.width**2 * scale.length for scale in scales]
    assert work == sorted(work)
    assert (scales[-1].width, scales[-1].length) == (384, 256)
    assert scales[0].width < 384
    for scale in scales:
        assert scale.width * scale.factor == 384
        assert scale.budget == 6 * 4 * 384**2 // scale.factor**2
    hurried = scale_of(384, 256, 3)
    assert hurried.whole_seconds > 3
    assert hurried == scale_of(384, 256, 0.001)  # which the next command goes on with
    assert (hurried.rungs, hurried.width) == (FEWEST, 48)


def test_seeds_are_saved_before_trials_shrink() -> None:
    scales = [scale_of(64, 128, seconds) for seconds in (300, 700, 1000, 2400)]
    assert [scale.whole for scale in scales] == [False, True, True, True]
    assert [scale.rungs for scale in scales[1:]] == [FEWEST, FEWER, FULL]
