"""A study's page while the study runs: written anew every few seconds, whole or not at all."""

import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from headwise.core.files import write_file
from headwise.lab.result import StudyResult
from headwise.lab.store import Store
from headwise.lab.study import Study
from headwise.report.pages.content import Live, Page
from headwise.report.pages.study import study_page
from headwise.report.pages.template import render_page

_SHARE = 0.05  # of the time, at most, goes into the page
_LEAST_SECONDS = 5.0


class LivePage:
    """report.html of a folder, kept current; it takes time to draw, so not too often."""

    def __init__(self, study: Study, tier: str, folder: str | Path) -> None:
        self._study, self._tier, self._path = study, tier, Path(folder) / "report.html"
        self._begun = time.monotonic()
        self._next = self._begun + _LEAST_SECONDS

    def renew(self, results: Store, fraction: float, doing: str) -> None:
        """Write the page anew if it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        write_file(self._path, render_page(self._page(results, self._live(fraction, doing))))
        spent = time.monotonic() - now
        self._next = time.monotonic() + max(_LEAST_SECONDS, spent / _SHARE)

    def _page(self, results: Store, live: Live) -> Page:
        """The page of this moment; claims are written for finished tables, and may not do yet."""
        counts = {row[:2]: row[2] for row in results.studies()}
        if counts.get((self._study.known_as, self._tier)):
            with suppress(ArithmeticError, LookupError, ValueError, TypeError):
                result = StudyResult.of(results, self._study, self._tier, final=False)
                return study_page(result, live)
        return Page(
            title=self._study.title,
            kicker=f"{self._study.paper} · study {self._study.name}, tier {self._tier}",
            question=self._study.question,
            answer="No figure yet: the runs that are finished do not fill one.",
            conclusive=False,
            live=live,
        )

    def _live(self, fraction: float, doing: str) -> Live:
        passed = time.monotonic() - self._begun
        left = passed * (1 - fraction) / fraction if fraction > 0 else 0.0
        return Live(fraction, doing, str(timedelta(seconds=round(left))))
