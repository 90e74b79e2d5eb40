"""How right the probe is on the zoo: by class, in total, and by the confidence that it stated.

Of answers stated with confidence p, a share p should be right; how far the share is from p is the
figure of merit, beside how often the probe is confident and wrong.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pandas as pd

from headwise.advise.probe.judged.attempt import ZooAttempt
from headwise.advise.probe.zoo.draw import CLASSES, RETRIEVAL
from headwise.core.intervals import Interval
from headwise.core.lazy import Drawn
from headwise.core.lines import fitted

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Borders of the ranges of stated confidence."""
_BAR = 16  # a line of the diagram fits 80 columns


@dataclass(frozen=True)
class ZooEvaluation(Drawn):
    """`by_class`, `totals` and `reliability` are tables; the ways of asking are kept apart."""

    drawn_by = "headwise.report.reliability:draw"

    seed: int
    attempts: tuple[ZooAttempt, ...]

    @cached_property
    def ways(self) -> tuple[str, ...]:
        """How the tasks were given."""
        return tuple(dict.fromkeys(each.assignment.given for each in self.attempts))

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row an attempt."""
        return pd.DataFrame([_row(each) for each in self.attempts])

    @cached_property
    def by_class(self) -> pd.DataFrame:
        """For every way and class: right, in the interval, refused, confident and wrong."""
        return pd.DataFrame(
            [
                {"given": way, "class": name, **_counts(here)}
                for way in self.ways
                for name in CLASSES
                if (here := [each for each in self._of(way) if each.name == name])
            ]
        )

    @cached_property
    def totals(self) -> pd.DataFrame:
        """The figures of merit, a row for every way of giving the task."""
        return pd.DataFrame([{"given": way, **_totals(self._of(way))} for way in self.ways])

    @cached_property
    def reliability(self) -> pd.DataFrame:
        """Of answers in a range of stated confidence: their mean confidence, the share right."""
        return pd.DataFrame(
            [
                {"given": way, **_reliable(low, high, here)}
                for way in self.ways
                for low, high in pairwise(EDGES)
                if (here := [each for each in self._of(way) if _said(each, low, high)])
            ]
        )

    def __str__(self) -> str:
        tasks = len({each.assignment.index for each in self.attempts})
        parts = [f"{tasks} tasks of the zoo {self.seed}"]
        for way in self.ways:
            table = self.by_class[self.by_class["given"] == way].drop(columns="given")
            parts += [f"\nGiven as {way}:", fitted(table)]
        parts += ["\nStated confidence and share right (│ is where the share should be):"]
        parts += [_drawn(row) for row in self.reliability.to_dict("records")]
        shown = self.totals.astype(str).set_index("given").T.rename_axis(None, axis=1)
        return "\n".join([*parts, "", shown.to_string()])

    def _repr_html_(self) -> str:
        return str(self.totals.to_html(index=False) + self.by_class.to_html(index=False))

    def to_data(self) -> dict[str, Any]:
        """All tables and all attempts, for JSON."""
        tables = {"totals": self.totals, "by_class": self.by_class, "reliability": self.reliability}
        plain = {name: json.loads(t.to_json(orient="records")) for name, t in tables.items()}
        return {**plain, "attempts": [each.to_data() for each in self.attempts]}

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_data(), ensure_ascii=False)

    def _of(self, way: str) -> list[ZooAttempt]:
        return [each for each in self.attempts if each.assignment.given == way]


def _said(attempt: ZooAttempt, low: float, high: float) -> bool:
    """Was there an answer of a confidence in [low, high), or exactly 1 at the end?"""
    within = low <= attempt.confidence < high or attempt.confidence == high == EDGES[-1]
    return attempt.answered and within


def _row(attempt: ZooAttempt) -> dict[str, object]:
    data = attempt.to_data()
    return {
        **data.pop("assignment"),
        **data,
        "outcome": attempt.outcome,
        "confident and wrong": attempt.confident_and_wrong,
    }


def _counts(here: Sequence[ZooAttempt]) -> dict[str, object]:
    outcomes = [each.outcome for each in here]
    return {
        "tasks": len(here),
        "exact": outcomes.count("right"),
        "in interval": sum(each.covered for each in here),
        "refused rightly": outcomes.count("refused rightly"),
        "refused wrongly": outcomes.count("refused wrongly"),
        "wrong": outcomes.count("wrong"),
        "confident and wrong": sum(each.confident_and_wrong for each in here),
        "failed": outcomes.count("failed"),
        "seconds": round(sum(each.seconds for each in here) / len(here), 1),
    }


def _totals(here: Sequence[ZooAttempt]) -> dict[str, object]:
    counted = _counts(here)
    answered = [each for each in here if each.answered]
    refused = [each for each in here if not each.answered and not each.failed]
    retrieval = [each for each in here if each.name == RETRIEVAL]
    stated = sum(each.confidence for each in answered)
    return {
        **counted,
        "confident and wrong, %": _percent(counted["confident and wrong"], len(here)),
        "refusals that are right, %": _percent(counted["refused rightly"], len(refused)),
        "answers that are right, %": _percent(counted["exact"], len(answered)),
        "their mean confidence, %": _percent(stated, len(answered)),
        "exact of retrieval, %": _percent(_right(retrieval), len(retrieval)),
    }


def _percent(part: Any, whole: int) -> float | None:
    return round(100 * float(part) / whole, 1) if whole else None


def _right(here: Sequence[ZooAttempt]) -> int:
    return sum(each.outcome == "right" for each in here)


def _reliable(low: float, high: float, here: Sequence[ZooAttempt]) -> dict[str, object]:
    share = Interval.of_share(_right(here), len(here))
    return {
        "from": low,
        "to": high,
        "answers": len(here),
        "stated": round(sum(each.confidence for each in here) / len(here), 4),
        "right": round(share.mean, 4),
        "low": round(share.low, 4),
        "high": round(share.high, 4),
    }


def _drawn(row: dict[Any, Any]) -> str:
    """A line of the reliability diagram."""
    bar = ["█" if place < round(_BAR * row["right"]) else "·" for place in range(_BAR)]
    bar[min(_BAR - 1, int(_BAR * row["stated"]))] = "│"
    return (
        f"{row['given']:>8} {row['from']:.2f}–{row['to']:.2f} {''.join(bar)} stated "
        f"{row['stated']:.2f}, right {row['right']:.2f} [{row['low']:.2f}, {row['high']:.2f}] "
        f"of {row['answers']}"
    )
