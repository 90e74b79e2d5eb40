"""What a kind of run is, and the table of those there are. Users add their own with `register`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from headwise.core.errors import InputError, require
from headwise.core.progress import OnProgress
from headwise.lab.run import Run
from headwise.training import Outcome

Perform = Callable[[Sequence[Run], OnProgress, Path | None], list[Outcome]]


@dataclass(frozen=True)
class Quantity:
    """What the number is that a run of a kind is judged by: less is better.

    `compared_by` "ratio": it is positive, spans decades, has a geometric mean and a logarithmic
    axis. "difference": it may be zero or negative, has an arithmetic mean and a linear axis.
    `number` is the format in which it is written.
    """

    name: str
    meaning: str
    unit: str
    compared_by: Literal["ratio", "difference"] = "ratio"
    number: str = ".2e"

    @classmethod
    def by_difference(cls, name: str, meaning: str, unit: str, number: str) -> "Quantity":
        """One that is compared by differences."""
        return cls(name, meaning, unit, "difference", number)

    @property
    def mean(self) -> str:
        """The kind of mean over seeds that terminal, page and figure show."""
        return "geometric mean" if self.compared_by == "ratio" else "mean"

    def __str__(self) -> str:
        return f"{self.name} = {self.meaning}."


@dataclass(frozen=True)
class Column:
    """A column of result tables: its name, its title on axes and in tables, its unit and symbol."""

    name: str
    title: str
    unit: str = ""
    symbol: str = ""

    @property
    def label(self) -> str:
        """The title with the unit, for an axis."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def short(self) -> str:
        """The symbol where there is one, else the name: for the head of a table."""
        return self.symbol or self.name


@dataclass(frozen=True)
class Kind:
    """A kind of run: what it holds, who does the work, at what cost, and what comes out.

    `perform` does a job: runs that differ in their seed alone, where to report progress, and a
    folder in which it may leave what it needs to go on if it is killed (None: nowhere). It gives
    an outcome a run. `describe` gives the values of `columns` for a run; `facts` are the columns
    that `perform` finds (`Outcome.facts`). `cost` is relative, for progress bars and balance;
    `together` says how many seeds are best done as one job.

    `nets`, `training` and `measure` are the types of a run's fields; a field whose type is not
    given is None in every run of the kind. `check` refuses, with a sentence, runs whose fields do
    not fit together.
    """

    name: str
    error: Quantity
    columns: Sequence[Column]
    describe: Callable[[Run], Mapping[str, Any]]
    perform: Perform
    cost: Callable[[Run], float] = lambda run: 1.0
    together: Callable[[Run], int] = lambda run: 1
    facts: Sequence[Column] = ()
    nets: tuple[type, ...] = ()
    training: type | None = None
    measure: type | None = None
    check: Callable[[Run], None] = lambda run: None
    home: str = field(default="", compare=False)
    """The module that registered it: a worker process imports it."""


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a kind known by its name. Call it where a module defines the kind, once."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    known = _kinds.get(kind.name)
    mains = ("__main__", "__mp_main__")  # a worker runs the main module under another name
    require(
        known is None or known.home == caller or {known.home, caller} <= set(mains),
        f"two kinds of run are called {kind.name!r}; choose another name",
    )
    if not kind.home:
        object.__setattr__(kind, "home", caller)
    _kinds[kind.name] = kind
    return kind


def is_kind(name: str) -> bool:
    """Is a kind of that name known here?"""
    return name in _kinds


def find_kind(name: str) -> Kind:
    """The kind of that name."""
    if name not in _kinds:
        raise InputError(
            f"no kind of run is called {name!r}; there are {', '.join(sorted(_kinds))}, and "
            "headwise.lab.kinds.register adds your own"
        )
    return _kinds[name]


def kind_of(run: Run) -> Kind:
    """The kind of a run, whose fields are of the types that the kind has."""
    kind = find_kind(run.kind)
    wanted = {
        "net": kind.nets,
        "training": (kind.training,) if kind.training else (),
        "measure": (kind.measure,) if kind.measure else (),
    }
    for name, types in wanted.items():
        value = getattr(run, name)
        fits = isinstance(value, types) if types else value is None
        if not fits:
            names = " or ".join(each.__name__ for each in types) or "None"
            raise InputError(
                f"a run of kind {kind.name!r} has as its {name} {names}, not {type(value).__name__}"
            )
    return kind


def homes(runs: Sequence[Run]) -> list[str]:
    """The modules, beside headwise's own, that a process must import to do these runs."""
    found = {find_kind(name).home for name in {run.kind for run in runs}}
    found |= {
        type(value).__module__
        for run in runs
        for value in (run.task, run.net, run.training, run.measure)
        if value is not None
    }
    return sorted(each for each in found if not each.startswith(("headwise.", "__")))
