"""What is on a page, whatever it is about: plain data that the template lays out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headwise.report.figures import DrawnFigure
from headwise.report.files import PaperFigure, printed
from headwise.report.pages.markup import Html


@dataclass(frozen=True)
class Chip:
    """A few words in a coloured frame; `mood` is good, bad, open, untested or plain."""

    text: str
    mood: str = "plain"


@dataclass(frozen=True)
class Point:
    """A statement with its verdict, its source and its numbers; how to test it if it was not."""

    statement: str
    chip: Chip
    source: str = ""
    numbers: str = ""
    command: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table that readers can sort and filter; cells are text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @cached_property
    def worded(self) -> list[bool]:
        """Which columns hold words: these begin at the left, numbers end at the right."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return [_is_words([cell for cell in column if cell]) for column in columns]


def _is_words(cells: Sequence[str]) -> bool:
    return 2 * sum(cell[0].isalpha() for cell in cells) > len(cells)


@dataclass(frozen=True)
class PageFigure:
    """A figure with its words. `name` is that of the files in which it is saved."""

    name: str
    title: str
    drawn: DrawnFigure
    caption: str = ""

    @cached_property
    def printed(self) -> PaperFigure:
        """The whole figure for print, drawn once."""
        return printed(self.drawn.chart)


@dataclass(frozen=True)
class Live:
    """How far the work is that the page reports on, while it runs."""

    fraction: float
    doing: str
    left: str = ""


@dataclass(frozen=True)
class Page:
    """A page: the question, the answer, the main figure; then what it rests on.

    `figures` has the main one first. `points` are claims: those that fail are shown first.
    `special` is markup of a kind of page, shown after the answer, `after` such markup after the
    main figure, and `scripts` are the files of this folder that they need. `facts` say how it was
    made, `folded` are long texts, `csv` is all data under the name `file_name`.CSV.
    """

    title: str
    answer: str
    kicker: str = ""
    question: str = ""
    settled_by: str = ""
    conclusive: bool = True
    chips: Sequence[Chip] = ()
    sentences: Sequence[str] = ()
    figures: Sequence[PageFigure] = ()
    points: Sequence[Point] = ()
    special: Html | None = None
    after: Html | None = None
    scripts: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    folded: Sequence[tuple[str, str]] = ()
    csv: str = ""
    file_name: str = "headwise"
    live: Live | None = None
