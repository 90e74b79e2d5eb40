"""The index of results: a row each, with the answer, the verdicts and, of studies, a small figure.

Studies come from stores. Pages of models, plans and probes are read for the summary in their head,
as text: nothing else of them is used.
"""

import html
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from headwise.lab.result import StudyResult
from headwise.lab.study import IntervalFigure
from headwise.report.pages.content import Chip, Page
from headwise.report.pages.markup import Html, linked
from headwise.report.pages.study import verdict_chips
from headwise.report.pages.template import static_svg


@dataclass(frozen=True)
class IndexEntry:
    """What the index says of one study and tier."""

    study: str
    tier: str
    title: str
    answer: str
    chips: tuple[Chip, ...]
    date: str
    link: str
    chart: object | None

    @staticmethod
    def of(result: StudyResult, link: str) -> "IndexEntry":
        """The entry of a result whose page is at `link`."""
        return IndexEntry(
            study=result.study.name,
            tier=result.tier,
            title=result.study.title,
            answer=result.conclusion.sentence,
            chips=tuple(verdict_chips(result)),
            date=str(result.table["finished"].max())[:10],
            link=link,
            chart=_small_figure(result),
        )


def _small_figure(result: StudyResult) -> Any | None:
    """The first panel of the study's main figure, small, its letters as large as elsewhere."""
    first = next(iter(result.charts.values()), None)
    panel: Any = None if first is None else next(iter(first.panels.values()))
    if panel is None or not isinstance(panel.width, int):
        return panel
    drawn = {figure.name: figure for figure in result.study.figures}[next(iter(result.charts))]
    height = {} if isinstance(drawn, IntervalFigure) else {"height": _SMALL[1]}
    return panel.properties(width=_SMALL[0], **height)


_SMALL = (300, 210)  # pixels of a figure in the index
_SUMMARY = re.compile(r'<meta name="headwise" content="([^"]*)">')
_HEAD = 20_000  # characters in which a page's summary stands
_MOODS = ("good", "bad", "open", "untested", "plain")


def page_entry(path: Path, link: str) -> IndexEntry | None:
    """The entry of a page that `headwise inspect`, `compress`, `plan`, `probe` or `build` wrote.

    None for other files, and for studies, which their stores tell more of.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        found = _SUMMARY.search(file.read(_HEAD))
    try:
        told = json.loads(html.unescape(found[1])) if found else {}
        title, answer, kicker = (str(told[name]) for name in ("title", "answer", "kicker"))
        chips = [Chip(str(text), str(mood)) for text, mood in told["chips"] if mood in _MOODS]
    except (ValueError, KeyError, TypeError):
        return None
    if not kicker.startswith("headwise "):
        return None
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    about = kicker.partition(" · ")[0]
    date = written.date().isoformat()
    return IndexEntry(about, "", title, answer, tuple(chips), date, link, None)


def index_page(entries: list[IndexEntry]) -> Page:
    """The page; tiers of the same study stand side by side, as do pages of one command."""
    numbers = count()
    studies = dict.fromkeys(entry.study for entry in entries if entry.tier)
    others = dict.fromkeys(entry.study for entry in entries if not entry.tier)
    sections = [
        _section([entry for entry in entries if entry.study == study], numbers)
        for study in (*studies, *others)
    ]
    return Page(
        title="What was asked, and what came out",
        answer=f"{_count(studies, 'study', 'studies')}, {_count(entries, 'result', 'results')}.",
        special=Markup("").join(sections),
    )


def _count(things: Collection[object], one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}"


def _section(entries: list[IndexEntry], numbers: "count[int]") -> Html:
    title = escape(entries[0].title if entries[0].tier else entries[0].study)
    name = escape(entries[0].study)
    cards = Markup("").join(_card(entry, next(numbers)) for entry in entries)
    return Markup(
        f'<section><h2 id="{name}">{title} <a class="anchor" href="#{name}" '
        f'aria-label="Link to {title}">#</a></h2><div class="panels">{cards}</div></section>'
    )


def _card(entry: IndexEntry, number: int) -> Html:
    chips = " ".join(
        f'<span class="chip {escape(chip.mood)}">{escape(chip.text)}</span>' for chip in entry.chips
    )
    named = f"{entry.study}, tier {entry.tier}" if entry.tier else entry.title
    picture = "" if entry.chart is None else static_svg(entry.chart, f"card-{number}")
    drawn = f'<div class="chart" role="img" aria-label="{escape(entry.title)}">{picture}</div>'
    link = escape(quote(entry.link))  # a file may be called javascript:… or hold a #
    return Markup(
        f'<article class="panel card"><div><h3><a href="{link}">{escape(named)}</a> '
        f'<span class="small">{escape(entry.date)}</span></h3>'
        f"<p>{linked(entry.answer)}</p><p>{chips}</p></div>{drawn if picture else ''}</article>"
    )
