"""Random studies whose records are known beforehand, whatever dies on the way.

The fate of a run is in its task: it ends well, after a while, or after its process was killed once;
or it raises an error, or kills every process that does it. Two kinds of run are grouped and priced
differently, and their prices say little about the time they take.
"""

import os
import random
import signal
import time
from pathlib import Path

from poor_study import study

from headwise.core.spec import spec
from headwise.lab.kinds import Column, Kind, Quantity, Reading, one_by_one, register
from headwise.lab.run import Run
from headwise.lab.study import Study

WELL, ONCE, RAISES, DIES = "well", "once", "raises", "dies"
MARKS = "RANDOM_STUDY_MARKS"  # the folder in which a process that dies once leaves its mark


@spec
class Fate:
    """What becomes of a run."""

    way: str
    number: int
    milliseconds: int


def _measure(run: Run) -> Reading:
    fate = run.task
    time.sleep(fate.milliseconds / 1000)
    if fate.way == RAISES:
        raise ArithmeticError(f"{fate.number} is not for counting")
    mark = Path(os.environ[MARKS], str(fate.number))
    if fate.way == DIES or (fate.way == ONCE and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Reading(answer(run))


def answer(run: Run) -> float:
    """What a run that ends well measures."""
    return run.task.number + 1 + run.seed / 8


_ERROR = Quantity("number", "the number", "units")
for _name, _together in {"fate-alone": 1, "fate-together": 3}.items():
    register(
        Kind(
            name=_name,
            error=_ERROR,
            columns=(Column("way", "what becomes of it"), Column("number", "its number")),
            describe=lambda run: {"way": run.task.way, "number": run.task.number},
            perform=one_by_one(_measure, _ERROR, "measured"),
            cost=lambda run: 1.0 + run.task.number % 7,
            together=lambda run, together=_together: together,  # type: ignore[misc]
        )
    )


def draw(seed: int) -> tuple[Study, dict[str, float], set[str]]:
    """A study, the numbers of the runs that end well, and the keys of those that fail."""
    chance = random.Random(seed)
    runs = []
    for number in range(chance.randint(5, 60)):
        fate = Fate(way=_way(chance, number), number=number, milliseconds=_pause(chance))
        kind = chance.choice(("fate-alone", "fate-together"))
        runs += [
            Run(kind=kind, task=fate, seed=seed) for seed in range(chance.choice((1, 1, 2, 5)))
        ]
    well = {run.key: answer(run) for run in runs if run.task.way in (WELL, ONCE)}
    return study(f"random-{seed}", runs), well, {run.key for run in runs} - set(well)


def _way(chance: random.Random, number: int) -> str:
    if number == 0:
        return WELL
    return chance.choices((WELL, ONCE, RAISES, DIES), (100, 1, 3, 0.5))[0]


def _pause(chance: random.Random) -> int:
    return chance.choice((0, 0, 0, 1, 10, 200))
