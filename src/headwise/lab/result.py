"""A study's result: its table, and what follows from it, computed once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.core.errors import InputError, require
from headwise.core.lazy import named
from headwise.core.lines import fitted
from headwise.core.spec import from_data
from headwise.lab.kinds import Column, Quantity, find_kind, kind_of
from headwise.lab.steadiness import all_lost, conclude, judge_all, so_far
from headwise.lab.store import Store
from headwise.lab.study import Claim, Conclusion, Study, Verdict, with_confidence
from headwise.lab.summary import mean_error, readable_value, summarise
from headwise.lab.table import column_of, table
from headwise.lab.work import Record


@dataclass(frozen=True)
class FailedRun:
    """A run that was tried `tries` times and failed: its part, its setting and the last error."""

    part: str
    setting: str
    seed: int
    tries: int
    error: str

    @staticmethod
    def of(part: str, record: Record, setting: Sequence[str]) -> "FailedRun":
        """What a store says of it; the `setting` is described by these columns."""
        try:
            run = from_data(json.loads(record.specification))
            described = kind_of(run).describe(run)
        except (InputError, ValueError):  # of a module that was not imported
            described = {}
        known = [
            f"{name} {readable_value(described[name])}" for name in setting if name in described
        ]
        failure, tries = record.result["failure"], record.result["tries"]
        return FailedRun(part, ", ".join(known), record.seed, tries, failure)

    def __str__(self) -> str:
        return f"{self.part}: {self.setting}, seed {self.seed}: {self.error} ({self.tries} tries)"


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What came of a study's tier: `table` has one row a run and part.

    `failures` are the runs that were tried and failed; running the study again tries them again.

    `str(result)` is the first table, the claims and the conclusion. `figure(name)` gives an Altair
    chart, `report(folder)` writes the page, the figures and their data.
    """

    study: Study
    tier: str
    table: pd.DataFrame
    planned: int
    failures: tuple[FailedRun, ...] = ()
    final: bool = True

    @staticmethod
    def of(store: Store, study: Study, tier: str, final: bool = True) -> "StudyResult":
        """The result of a study's tier, from the store alone.

        Not `final`, while the study runs: what the runs so far say, without asking other seeds,
        which takes a while.
        """
        study.tier(tier)
        found = table(store.records(study.owner, tier))
        failures = tuple(
            FailedRun.of(part, record, study.settings)
            for part, record in store.records(study.owner, tier, failed=True)
        )
        require(
            len(found) > 0,
            f"{store.path} holds no finished run of {study.known_as}, tier {tier}"
            + (
                f"; {len(failures)} failed, the first with: {failures[0].error}; "
                if failures
                else "; "
            )
            + f"run: headwise study run {study.known_as} --tier {tier} --store {store.path}",
        )
        planned = {(name, level): total for name, level, _, total in store.studies()}
        return StudyResult(study, tier, found, planned[study.known_as, tier], failures, final)

    @cached_property
    def finished(self) -> int:
        """How many of the planned runs are finished."""
        return int(self.table["key"].nunique())

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its runs; first that of the study's first part."""
        by_part = self.table.groupby("part")["kind"].unique()
        ordered = [kind for part in self.study.parts if part in by_part for kind in by_part[part]]
        return tuple(dict.fromkeys(ordered))

    @cached_property
    def error(self) -> Quantity:
        """What the column `error` is."""
        return self.study.error or find_kind(self.kinds[0]).error

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a setting: the smallest error over seeds, the mean and its interval."""
        return summarise(self.table, self.study.settings, self.error.compared_by == "ratio")

    @cached_property
    def first_table(self) -> pd.DataFrame:
        """The errors by the study's rows and columns: smallest or mean over seeds."""
        study = self.study
        first = next(part for part in study.parts if part in set(self.table["part"]))
        shown = self.table if "part" in study.rows else self.table[self.table["part"] == first]
        return shown.pivot_table(
            index=list(study.rows),
            columns=study.columns,
            values="error",
            aggfunc="min" if study.score == "smallest" else self._mean,
        )

    def _mean(self, errors: pd.Series) -> float:
        """The mean that the summary has, too: geometric where errors are compared by ratios."""
        return mean_error(errors.to_numpy(float), self.error.compared_by == "ratio")

    @cached_property
    def conclusion(self) -> Conclusion:
        """The answer to the study's question, if other seeds would give it, too."""
        if not self.final and not all_lost(self.table):
            return self.study.finding(self.table)
        return conclude(self.study, self.table, self.error.compared_by == "ratio")

    @cached_property
    def verdicts(self) -> Mapping[Claim, Verdict]:
        """What the table says of every claim, and whether other seeds would say the same."""
        if not self.final:
            return so_far(self.study, self.table)
        whole = self.finished >= self.planned
        missing = "" if whole else f"{self.finished} of {self.planned} runs are finished"
        return judge_all(self.study, self.table, self.error.compared_by == "ratio", missing)

    @cached_property
    def published(self) -> pd.DataFrame:
        """A paper's numbers; no rows where there are none."""
        if self.study.published is None:
            return pd.DataFrame({"part": pd.Series(dtype=str), "error": pd.Series(dtype=float)})
        return self.study.published()

    @cached_property
    def charts(self) -> Mapping[str, Any]:
        """Every figure that the tier has runs for, by name."""
        return named("headwise.report.figures:draw_all")(self)

    def column(self, name: str) -> Column:
        """Title, unit and symbol of a column."""
        return column_of(name, self.kinds)

    def figure(self, name: str, path: str | Path | None = None) -> Any:
        """A figure as an Altair chart; written to a .png, .svg, .pdf or .html file if asked."""
        names = ", ".join(self.charts) or "none"
        require(name in self.charts, f"there is no figure {name!r}; there are: {names}")
        chart = self.charts[name].chart
        if path is not None:
            named("headwise.report.files:save_chart")(chart, path)
        return chart

    def report(self, folder: str | Path) -> Path:
        """Write report.html, figures as PNG and SVG, and their data; gives the page's path."""
        page: Path = named("headwise.report.build:write_report")(self, Path(folder))
        return page

    def to_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "study": self.study.known_as,
            "tier": self.tier,
            "finding": self.conclusion.sentence,
            "value": self.conclusion.value,
            "error": self.error.name,
            "unit": self.error.unit,
            "claims": [
                {
                    "claim": claim.statement,
                    "status": verdict.status,
                    "numbers": verdict.numbers,
                    "same_with_other_seeds": verdict.same,
                    "why": verdict.why,
                }
                for claim, verdict in self.verdicts.items()
            ],
            "failed": [asdict(failure) for failure in self.failures],
        }

    def first_rows(self) -> tuple[list[str], list[list[str]]]:
        """The first table as text: its head, and its rows."""
        study, errors = self.study, self.first_table
        symbol = self.column(study.columns).short
        head = [*study.rows, *(f"{symbol} = {readable_value(each)}" for each in errors.columns)]
        number = ".1e" if study.score == "smallest" else self.error.number
        rows = []
        for place, row in errors.iterrows():
            places = place if isinstance(place, tuple) else (place,)
            cells = ["–" if error != error else f"{error:{number}}" for error in row]
            rows.append([*map(readable_value, places), *cells])
        return head, rows

    @property
    def failed_in_words(self) -> str:
        """How many runs failed, and the first of them; nothing if none did."""
        if not self.failures:
            return ""
        runs = len({(failure.setting, failure.seed) for failure in self.failures})
        return (
            f"{runs} of {self.planned} runs failed; the same command tries them again. "
            f"The first: {self.failures[0]}"
        )

    @property
    def first_title(self) -> str:
        """What the first table shows."""
        score = self.error.mean if self.study.score == "mean" else self.study.score
        return f"{score.capitalize()} of {self.error.name} over seeds"

    def __str__(self) -> str:
        head, rows = self.first_rows()
        shown = fitted(pd.DataFrame(rows, columns=head), len(self.study.rows))
        lines = [self.first_title, shown]
        lines += [
            f"{verdict.status}: {claim.statement} ({with_confidence(verdict)})"
            for claim, verdict in self.verdicts.items()
            if verdict.status != "not tested"
        ]
        lines.append(self.conclusion.sentence)
        if self.conclusion.settled_by:
            lines.append(f"What would settle it: {self.conclusion.settled_by}.")
        if self.failures:
            lines.append(self.failed_in_words)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, rows = self.first_rows()
        shown = pd.DataFrame(rows, columns=head).to_html(index=False)
        claims = "".join(
            f"<li>{escape(verdict.status)}: {escape(claim.statement)}</li>"
            for claim, verdict in self.verdicts.items()
            if verdict.status != "not tested"
        )
        title, answer = escape(self.first_title), escape(self.conclusion.sentence)
        return f"<p><b>{answer}</b></p><p>{title}</p>{shown}<ul>{claims}</ul>"
