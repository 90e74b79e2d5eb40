"""Successive halving: candidates run on more and more seeds, the worse half drops out.

Runs of equal seeds see equal data, so candidates are compared by their differences from uniform,
seed by seed. The winner is then compared once more, on seeds that chose nobody: the interval of
that comparison is not flattered by the choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from headwise.core.errors import require

UNIFORM = "uniform"

Pair = tuple[str, int]
Measure = Callable[[str, list[Pair]], dict[Pair, float]]
"""`measure(what, pairs)`: the loss of every (candidate, seed)."""


@dataclass(frozen=True)
class Rungs:
    """Seeds that each round adds, candidates that enter it, and the fresh seeds at the end."""

    seeds: tuple[int, ...] = (3, 3)
    enter: tuple[int, ...] = (1000, 4)
    fresh: int = 5

    def __post_init__(self) -> None:
        require(
            len(self.seeds) == len(self.enter) >= 1 and min(self.seeds) >= 1 and self.fresh >= 2,
            "every round adds a seed or more, and the last comparison takes two or more",
        )

    def runs(self, candidates: int) -> int:
        """An upper bound of all the runs."""
        entered = [min(candidates, enter) + 1 for enter in self.enter]
        entered[0] = candidates
        return sum(c * s for c, s in zip(entered, self.seeds, strict=True)) + 2 * self.fresh


class OutOfTime(Exception):
    """The time budget is spent; `measure` raises it."""


FULL, FEWER, FEWEST = Rungs(), Rungs((2, 2), (1000, 3), 3), Rungs((1, 2), (1000, 3), 2)


@dataclass(frozen=True)
class Race:
    """Who won; losses by (candidate, seed); and the fresh seeds, none where time ran out."""

    winner: str
    losses: dict[Pair, float]
    fresh_seeds: tuple[int, ...]

    def differences(self, name: str, seeds: Iterable[int]) -> list[float]:
        """Loss minus uniform's, on the seeds on which both ran."""
        pairs = [((name, seed), (UNIFORM, seed)) for seed in seeds]
        return [
            self.losses[mine] - self.losses[uniform]
            for mine, uniform in pairs
            if mine in self.losses and uniform in self.losses
        ]

    def seeds(self, name: str) -> list[int]:
        return sorted(seed for candidate, seed in self.losses if candidate == name)


def race(names: Sequence[str], measure: Measure, rungs: Rungs, first_seed: int = 0) -> Race:
    """Find the candidate of least loss; `names` include uniform, which runs in every round.

    If time runs out after the first round, what is known decides, and against uniform only a
    candidate whose interval is clear of zero.
    """
    assert UNIFORM in names
    losses: dict[Pair, float] = {}
    left, seed, in_time = list(names), first_seed, True

    def differences(name: str, seeds: Iterable[int]) -> list[float]:
        return Race(name, losses, ()).differences(name, seeds)

    def mean(name: str) -> float:
        return float(np.mean(differences(name, range(first_seed, seed))))

    for number, (count, enter) in enumerate(zip(rungs.seeds, rungs.enter, strict=True), 1):
        if number > 1:
            best = sorted((name for name in left if name != UNIFORM), key=mean)[:enter]
            left = [UNIFORM, *best]
        added = range(seed, seed + count)
        what = f"round {number} of {len(rungs.seeds)}: {len(left)} candidates"
        try:
            losses |= measure(what, [(name, each) for name in left for each in added])
        except OutOfTime:
            if number == 1:
                raise
            in_time = False
            break
        seed += count
    winner = min(left, key=mean)
    if winner == UNIFORM:
        return Race(winner, losses, ())
    fresh = tuple(range(seed, seed + rungs.fresh))
    try:
        if in_time:
            pairs = [(name, each) for name in (winner, UNIFORM) for each in fresh]
            losses |= measure(f"checking {winner} on fresh seeds", pairs)
    except OutOfTime:
        in_time = False
    if in_time:
        better = float(np.mean(differences(winner, fresh))) <= 0
        return Race(winner if better else UNIFORM, losses, fresh)
    clear = interval(differences(winner, range(first_seed, seed)))[2] < 0
    return Race(winner if clear else UNIFORM, losses, ())


def interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % t-interval; infinite where there are fewer than two."""
    mean = float(np.mean(differences)) if len(differences) else 0.0
    if len(differences) < 2:
        return mean, -inf, inf
    from scipy.stats import t

    error = float(np.std(differences, ddof=1)) / sqrt(len(differences))
    half = float(t.ppf(0.975, len(differences) - 1)) * error
    return mean, mean - half, mean + half
