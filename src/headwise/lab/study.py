"""What a study is: data plus pure functions of the result table. It does not run anything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from headwise.core.errors import require
from headwise.lab.run import Run
from headwise.tasks.texts import KnownText

SYMBOLS = {"length": "T", "points": "N", "layers": "L", "dim": "d", "rank": "r", "heads": "H"}
HEAD_COUNT_SETTING = ("layers", "intrinsic_dim", "overlap", "width", "heads", "head_dim", "length")


@dataclass(frozen=True)
class Tier:
    """A size at which a study can be run, and what it costs."""

    price: str
    parts: Callable[[], Mapping[str, list[Run]]]


@dataclass(frozen=True)
class Verdict:
    """What the result table says of a claim, with the numbers.

    "undecided": it was tested, and the seeds are too few to tell.
    """

    status: Literal["holds", "does not hold", "undecided", "not tested"]
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, or a question of its readers, as a function of the results."""

    statement: str
    source: str
    check: Callable[[pd.DataFrame], Verdict]


@dataclass(frozen=True)
class Figure:
    """Error against `x`, a line for each `colour`; a row of panels for each part.

    `panels` maps a part of the study to its title; with `facet`, a panel for each value of that
    column. Published numbers of a part are drawn beside ours where there are any. `references`
    makes of our summary, one row a setting, what is drawn on the same axes as dashed lines: rows
    with the columns of the summary that place them, a `label` and `error_min`.
    """

    name: str
    title: str
    caption: str
    panels: Mapping[str, str]
    x: str
    colour: str
    x_log: bool = False
    facet: str | None = None
    references: Callable[[pd.DataFrame], pd.DataFrame] | None = None


@dataclass(frozen=True)
class IntervalFigure:
    """Means with intervals, a line for each label and a panel for each text or the like.

    `data` makes of the results the rows `label`, `panel`, `group` (the colour), `mean`, `low`,
    `high` and `seeds`. With `zero`, a rule marks zero.
    """

    name: str
    title: str
    caption: str
    axis: str
    data: Callable[[pd.DataFrame], pd.DataFrame]
    zero: bool = False


@dataclass(frozen=True)
class Conclusion:
    """An answer with its evidence, or a refusal that says what is missing."""

    sentence: str
    value: int | None
    settled_by: str = ""

    @property
    def conclusive(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class Study:
    """A published experiment that anyone can rerun.

    Runs that agree in the part and in the columns of `setting` differ in their seed alone. A
    first table shows the smallest (or mean: `score`) error over seeds by `rows` and `columns`, of
    the first part, or of all where "part" is among the rows. `error` is what the column `error` is
    called here, `error_is` what it means and `number` how it is written. A study on text names its
    `texts`; with `parts_of_files`, which takes a tier, text files and plan files, it can be run on
    the user's own.
    """

    name: str
    title: str
    question: str
    paper: str
    tiers: Mapping[str, Tier]
    parts: Mapping[str, str]
    published: Callable[[], pd.DataFrame]
    claims: tuple[Claim, ...]
    figures: tuple[Figure | IntervalFigure, ...]
    finding: Callable[[pd.DataFrame], Conclusion]
    notes: tuple[str, ...] = field(default=())
    setting: tuple[str, ...] = HEAD_COUNT_SETTING
    rows: tuple[str, ...] = ("heads",)
    columns: str = "length"
    error: str = "NMSE"
    error_is: str = "mean squared validation error / variance of the target"
    score: Literal["smallest", "mean"] = "smallest"
    number: str = ".2e"
    texts: tuple[KnownText, ...] = ()
    parts_of_files: (
        Callable[[str, Sequence[Path], Sequence[Path]], Mapping[str, list[Run]]] | None
    ) = None

    def tier(self, name: str) -> Tier:
        require(
            name in self.tiers,
            f"{self.name} has no tier {name!r}; its tiers are {', '.join(self.tiers)}",
        )
        return self.tiers[name]
