"""A study's page while the study runs: written anew every few seconds, whole or not at all."""

import time
from datetime import timedelta
from pathlib import Path

from headwise.core.files import write_file
from headwise.lab.result import StudyResult
from headwise.lab.store import Store
from headwise.lab.study import Study
from headwise.report.pages.content import Live
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
        """Write the page anew if it is time, and if there is a finished run to show."""
        now = time.monotonic()
        if now < self._next:
            return
        counts = {row[:2]: row[2] for row in results.studies()}
        if not counts.get((self._study.known_as, self._tier)):
            return
        try:
            result = StudyResult.of(results, self._study, self._tier, final=False)
            write_file(self._path, render_page(study_page(result, self._live(fraction, doing))))
        except (ArithmeticError, LookupError, ValueError, TypeError):
            pass  # claims are written for finished tables: the page of this moment is left out
        spent = time.monotonic() - now
        self._next = time.monotonic() + max(_LEAST_SECONDS, spent / _SHARE)

    def _live(self, fraction: float, doing: str) -> Live:
        passed = time.monotonic() - self._begun
        left = passed * (1 - fraction) / fraction if fraction > 0 else 0.0
        return Live(fraction, doing, str(timedelta(seconds=round(left))))
