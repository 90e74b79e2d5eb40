"""Successive halving: candidates run on more and more seeds, the worse half drops out.

Runs of equal seeds see equal data, so candidates are compared by their differences from uniform,
seed by seed. The winner is then compared once more, on seeds that chose nobody: the interval of
that comparison is not flattered by the choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from headwise.core.errors import require
from headwise.core.intervals import Interval

UNIFORM = "uniform"

Pair = tuple[str, int]
Measure = Callable[[str, list[Pair]], dict[Pair, float]]
"""`measure(what, pairs)`: the loss of every (candidate, seed); of fewer if the time is over."""


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


FULL, FEWER, FEWEST = Rungs(), Rungs((2, 2), (1000, 3), 3), Rungs((1, 2), (1000, 3), 2)


@dataclass(frozen=True)
class Race:
    """Who won; losses by (candidate, seed); and the fresh seeds, none where time ran out."""

    winner: str
    losses: dict[Pair, float]
    fresh_seeds: tuple[int, ...] = ()
    in_time: bool = True

    def differences(self, name: str, seeds: Iterable[int]) -> list[float]:
        """Loss minus uniform's, on the seeds on which both ran."""
        pairs = [((name, seed), (UNIFORM, seed)) for seed in seeds]
        return [
            self.losses[mine] - self.losses[uniform]
            for mine, uniform in pairs
            if mine in self.losses and uniform in self.losses
        ]

    def against_uniform(self, name: str, seeds: Iterable[int] | None = None) -> Interval:
        """The mean difference and its interval, over these seeds or over all."""
        return Interval.of(self.differences(name, self.seeds(name) if seeds is None else seeds))

    def seeds(self, name: str) -> list[int]:
        """The seeds on which a candidate ran."""
        return sorted(seed for candidate, seed in self.losses if candidate == name)


def race(names: Sequence[str], measure: Measure, rungs: Rungs, first_seed: int = 0) -> Race:
    """Find the candidate of least loss; `names` include uniform, which runs in every round.

    If time runs out, what is known decides, and against uniform only a candidate whose interval
    is clear of zero.
    """
    assert UNIFORM in names
    losses: dict[Pair, float] = {}
    left, seed = list(names), first_seed

    def measured(what: str, entered: Sequence[str], seeds: range) -> bool:
        """Were all measured in time?"""
        pairs = [(name, each) for each in seeds for name in entered]
        losses.update(measure(what, pairs))
        return losses.keys() >= set(pairs)

    def mean(name: str) -> float:
        differences = Race(name, losses).differences(name, range(first_seed, seed))
        return float(np.mean(differences)) if differences else inf

    in_time = True
    for number, (count, enter) in enumerate(zip(rungs.seeds, rungs.enter, strict=True), 1):
        if number > 1:
            best = sorted((name for name in left if name != UNIFORM), key=mean)[:enter]
            left = [UNIFORM, *best]
        what = f"round {number} of {len(rungs.seeds)}: {len(left)} candidates"
        in_time = measured(what, left, range(seed, seed + count))
        seed += count
        if not in_time:
            break
    winner = min(left, key=lambda name: (mean(name), name != UNIFORM))
    if winner == UNIFORM:
        return Race(UNIFORM, losses, in_time=in_time)
    fresh = range(seed, seed + rungs.fresh)
    if in_time and measured(f"checking {winner} on fresh seeds", (winner, UNIFORM), fresh):
        checked = Race(winner, losses, tuple(fresh))
        better = checked.against_uniform(winner, fresh).mean <= 0
        return checked if better else Race(UNIFORM, losses, tuple(fresh))
    clear = Race(winner, losses).against_uniform(winner).sign == "better"
    return Race(winner if clear else UNIFORM, losses, in_time=False)
