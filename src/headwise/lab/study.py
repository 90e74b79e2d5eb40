"""What a study is: data plus pure functions of the result table. It does not run anything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from headwise.core.errors import InputError, require
from headwise.lab.kinds import Quantity
from headwise.lab.run import Run
from headwise.lab.store import STUDY
from headwise.tasks.registries import Fetchable

Parts = Mapping[str, list[Run]]
PartsOfFiles = Callable[[str, Sequence[Path], Sequence[Path]], Parts]


@dataclass(frozen=True)
class Tier:
    """A size at which a study can be run, and what it costs."""

    price: str
    parts: Callable[[], Parts]


def three_tiers(prices: tuple[str, str, str], *parts: Callable[[], Parts]) -> dict[str, Tier]:
    """The usual tiers: the price of each, and the functions that make their parts."""
    names = ("quick", "standard", "full")
    made = zip(names, prices, parts, strict=True)
    return {name: Tier(price, make) for name, price, make in made}


def tiers_of(parts: Callable[[str], Parts], prices: Mapping[str, str]) -> dict[str, Tier]:
    """A tier for every name with a price, where one function makes the parts of all of them."""
    return {name: Tier(price, partial(parts, name)) for name, price in prices.items()}


Status = Literal["holds", "does not hold", "cannot tell", "not tested"]


@dataclass(frozen=True)
class Verdict:
    """What the result table says of a claim, with the numbers.

    "cannot tell": it was tested, and with other seeds it could have come out otherwise; `why` says
    how that is known. `value` is the number that decides, if it is one, `meaning` what it is and
    the bar that it is held against, and `published` the paper's own. `same` is the probability that
    other seeds give the same verdict, and `interval` is where they put the value in 95 of 100 cases
    (`headwise.lab.steadiness`): None where the claim does not depend on seeds.
    """

    status: Status
    numbers: str
    value: float | None = None
    meaning: str = ""
    published: float | None = None
    same: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""

    @staticmethod
    def of(
        holds: bool,
        numbers: str,
        value: float | None = None,
        meaning: str = "",
        published: float | None = None,
    ) -> "Verdict":
        """The verdict of a claim that was tested."""
        status: Status = "holds" if holds else "does not hold"
        return Verdict(status, numbers, value, meaning, published)

    @property
    def confidence(self) -> str:
        """How steady it is, in words; nothing where no seeds are involved."""
        if self.why:
            return self.why
        return "" if self.same is None else f"the same with other seeds: {said_share(self.same)}"


def said_share(share: float) -> str:
    """A share of resamples as a percentage that does not promise more than they can show."""
    return "99 % or more" if share >= 0.99 else f"{100 * share:.0f} %"


def with_confidence(verdict: Verdict) -> str:
    """Its numbers, and how steady it is, where that is known."""
    return "; ".join(each for each in (verdict.numbers, verdict.confidence) if each)


NOT_TESTED = Verdict("not tested", "not part of this tier")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, or a question of its readers, as a function of the results.

    Where the results hold nothing of it, the verdict is `NOT_TESTED`. `exact`: it is about
    networks that are built, or it is a theorem, so that no other seed can change it.
    """

    statement: str
    source: str
    check: Callable[[pd.DataFrame], Verdict]
    exact: bool = False


@dataclass(frozen=True)
class Figure:
    """Error against `x`, a line for each `colour`; a row of panels for each part.

    `panels` maps a part of the study to its title; with `facet`, a panel for each value of that
    column, called as `facet_titles` says and in that order, where it says so. Published numbers of
    a part are drawn beside ours where there are any. `references` makes of our summary, one row a
    setting, what is drawn on the same axes as dashed lines: rows with the columns of the summary
    that place them, a `label` and `error_min`. `notes` makes of it what is written into the figure:
    rows with a `label` and where it stands; a row without `error_min` is a line across all errors.
    `only` names a column, and says of its values whether they are drawn.
    """

    name: str
    title: str
    caption: str
    panels: Mapping[str, str]
    x: str
    colour: str
    x_log: bool = False
    facet: str | None = None
    facet_titles: Mapping[Any, str] = field(default_factory=dict)
    references: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    notes: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    only: tuple[str, Callable[[Any], bool]] | None = None

    def drawn(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Of a table or summary, the rows that it draws."""
        here = rows["part"].isin(list(self.panels))
        if self.only is not None:
            column, drawn = self.only
            here &= rows[column].map(drawn).astype(bool)
        return rows[here]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it draws."""
        return (self.x, self.colour, *([self.facet] if self.facet else []))


@dataclass(frozen=True)
class IntervalFigure:
    """Means with intervals, a line for each label and a panel for each text or the like.

    `data` makes of the results the rows `label`, `panel`, `group` (the colour), `mean`, `low`,
    `high` and `seeds`. Labels are sorted by their mean, or stand as the rows do where these are
    `ordered`. With `zero`, a rule marks zero.
    """

    name: str
    title: str
    caption: str
    axis: str
    data: Callable[[pd.DataFrame], pd.DataFrame]
    zero: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Conclusion:
    """An answer with its evidence, or a refusal that says what is missing.

    `answer` is what must be the same with other seeds for the sentence to stand: by default the
    `value`; where that is a measured size, what the sentence says of it.
    """

    sentence: str
    value: int | None
    settled_by: str = ""
    answer: str = ""

    def agrees_with(self, other: "Conclusion") -> bool:
        """Is this the same answer?"""
        if not (self.conclusive and other.conclusive):
            return False
        return (self.answer or self.value) == (other.answer or other.value)

    @property
    def conclusive(self) -> bool:
        """Is there an answer?"""
        return self.value is not None


@dataclass(frozen=True)
class Study:
    """A published experiment that anyone can rerun, or a user's own.

    `parts` gives every part's title, `tiers` the runs of the parts at a size. A first table shows
    the smallest (or mean: `score`) error over seeds by `rows` and `columns`, of the first part, or
    of all where "part" is among the rows. Runs that agree in the part and in the columns of
    `setting` differ in their seed alone; by default these are the columns of the first table and
    of the figures. What the error is, the kind of the runs says, unless `error` says it better.

    `published` gives a paper's numbers: `part`, `error` and columns of the setting. A study on text
    or other data names what it uses (`texts`); with `parts_of_files`, which takes a tier, text
    files and plan files, it can be run on the user's own; with `parts_of_data`, which takes a tier
    and a folder, a file or a name on the hub, on the user's own data; `parts_of_evidence` gives the
    runs of a tier on the data of the shipped table, where those are not its own. `preparing` names
    parts whose runs other parts go on from: they measure nothing of their own and have no table.
    `paired`: a seed is the same in all settings (the same batches, or the same trained network), so
    that seeds are drawn together when it is asked whether others would give the same verdicts.
    `address` is where a study of a user's own module was found, "module:NAME".
    """

    name: str
    title: str
    question: str
    tiers: Mapping[str, Tier]
    parts: Mapping[str, str]
    rows: tuple[str, ...]
    columns: str
    finding: Callable[[pd.DataFrame], Conclusion]
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure | IntervalFigure, ...] = ()
    paper: str = ""
    published: Callable[[], pd.DataFrame] | None = None
    notes: tuple[str, ...] = ()
    setting: tuple[str, ...] = ()
    error: Quantity | None = None
    score: Literal["smallest", "mean"] = "smallest"
    texts: tuple[Fetchable, ...] = ()
    parts_of_files: PartsOfFiles | None = None
    parts_of_data: Callable[[str, str], Parts] | None = None
    parts_of_evidence: Callable[[str], Parts] | None = None
    preparing: tuple[str, ...] = ()
    paired: bool = False
    address: str = ""

    @property
    def known_as(self) -> str:
        """How it is called on the command line and found again: its address, else its name."""
        return self.address or self.name

    @property
    def owner(self) -> str:
        """Under which its runs are planned in a store."""
        return f"{STUDY}{self.known_as}"

    @property
    def settings(self) -> tuple[str, ...]:
        """The columns that tell settings apart."""
        drawn = [figure.columns for figure in self.figures if isinstance(figure, Figure)]
        found = (*self.rows, self.columns, *(name for columns in drawn for name in columns))
        return self.setting or tuple(name for name in dict.fromkeys(found) if name != "part")

    def tier(self, name: str) -> Tier:
        """The tier of that name."""
        require(
            name in self.tiers,
            f"{self.name} has no tier {name!r}; it has {', '.join(self.tiers) or 'none'}",
        )
        tier = self.tiers[name]
        require(isinstance(tier, Tier), f"{self.name}: tier {name!r} is no headwise.lab.study.Tier")
        return tier

    def runs(
        self,
        tier: str,
        texts: Sequence[Path] = (),
        plans: Sequence[Path] = (),
        data: str | None = None,
    ) -> dict[str, list[Run]]:
        """The runs of a tier by part: of the study as it is, or on the user's own material."""
        planned = self.tier(tier).parts
        of_files = self.parts_of_files
        if (texts or plans) and of_files is None:
            raise InputError(
                f"{self.name} has no text of its own to replace: leave out --text and --plan"
            )
        of_data = self.parts_of_data
        if data is not None and of_data is None:
            raise InputError(f"{self.name} has no data of its own to replace: leave out --data")
        try:
            asked = texts or plans
            parts = of_files(tier, texts, plans) if of_files and asked else planned()
            parts = of_data(tier, data) if of_data and data is not None else parts
            return {part: list(runs) for part, runs in parts.items()}
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # the study's own code, which may be anyone's
            raise InputError(
                f"study {self.name}: the runs of tier {tier!r} cannot be made "
                f"({type(error).__name__}: {error})"
            ) from error
