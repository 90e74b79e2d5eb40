"""A study some of whose runs fail: a number says how. For tests of what failure costs."""

import os
import signal
from dataclasses import replace
from pathlib import Path

from headwise.core.errors import InputError
from headwise.core.spec import spec
from headwise.lab.kinds import Column, Kind, Quantity, Reading, one_by_one, register
from headwise.lab.run import Run
from headwise.lab.study import Conclusion, Study, Tier

SOUND, RAISES, DIES, REFUSES, RECOVERS = "sound", "raises", "dies", "refuses", "recovers"


@spec
class Behaviour:
    """A task that is done in some way; `number` tells tasks apart."""

    way: str
    number: int = 0


def which_process(*_: object) -> int:
    """The worker that does the job."""
    return os.getpid()


def _measure(run: Run) -> Reading:
    way = run.task.way
    if way == DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    if way == RAISES:
        raise ZeroDivisionError("nothing can be divided by nothing")
    if way == REFUSES:
        raise InputError("this is no number; numbers are accepted")
    if way == RECOVERS:
        tried = Path(os.environ["POOR_STUDY_FILE"])
        if not tried.exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return Reading(float(run.task.number + 1))


_ERROR = Quantity("number", "the number", "units")
register(
    Kind(
        name="behaviour",
        error=_ERROR,
        columns=(Column("way", "how it is done"), Column("number", "its number")),
        describe=lambda run: {"way": run.task.way, "number": run.task.number},
        perform=one_by_one(_measure, _ERROR, "measured"),
    )
)


def runs(*ways: str, count: int = 1) -> list[Run]:
    return [
        Run(kind="behaviour", task=Behaviour(way=way, number=number), seed=0)
        for way in ways
        for number in range(count)
    ]


def study(name: str, planned: list[Run]) -> Study:
    return Study(
        name=name,
        title="A study in which some runs fail",
        question="What does a failure cost?",
        tiers={"quick": Tier("nothing", lambda: {"all": planned})},
        parts={"all": "All"},
        rows=("way",),
        columns="number",
        finding=lambda results: Conclusion(f"{len(results)} runs.", len(results)),
    )


POOR = study("poor", [*runs(SOUND, count=4), *runs(RAISES, DIES)])
LUCKLESS = study("luckless", [*runs(SOUND, count=4), *runs(RECOVERS, RAISES)])
HOPELESS = study("hopeless", runs(RAISES))
REFUSED = study("refused", [*runs(SOUND, count=4), *runs(REFUSES)])
RECOVERING = study("recovering", [*runs(SOUND, count=4), *runs(RECOVERS)])
TRIVIAL = replace(
    study("trivial", []),
    tiers={
        "quick": Tier("nothing", lambda: {"all": runs(SOUND, count=200)}),
        "full": Tier("seconds", lambda: {"all": runs(SOUND, count=20_000)}),
    },
)
