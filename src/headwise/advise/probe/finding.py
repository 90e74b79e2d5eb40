"""What a probe found: an answer with its evidence, or a refusal that says what is missing."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from headwise.advise.probe.descent.head_dim import HeadDim
from headwise.advise.probe.verdict import CONFIDENT
from headwise.core.lazy import Drawn

COLUMNS = ("method", "quantity", "heads", "head_dim", "length", "seed", "value")
ERROR = "held-out error"


@dataclass(frozen=True)
class Finding(Drawn):
    """`heads` is None where the evidence does not support an answer; `sentence` says why.

    `interval` holds 95 % of the probability, `confidence` is that of `heads` itself. `evidence`
    is a table: one measured number a row. `notes` are what else was seen, a sentence each;
    `settled_by` says what would give an answer, or a surer one. `seconds` is what it took.

    `precision` is the share of the target's variance (of a constant's error, where targets are
    labels) to which `heads` holds: networks with so many heads reach it, or a count would have seen
    it. What is less is not seen, and may need heads of its own.

    `head_dim` holds the query–key and the value dimension a head needs, with an interval, and
    `layers` is 1 where one attention layer was enough, 2 where it was not and a second one clearly
    helped (there is no number of heads then); both are None where the probe cannot tell.
    """

    drawn_by = "headwise.report.probe:draw"

    sentence: str
    heads: int | None
    settled_by: str = ""
    interval: tuple[int, int] | None = None
    confidence: float = 0.0
    precision: float | None = None
    evidence: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(COLUMNS)))
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    head_dim: HeadDim | None = None
    layers: int | None = None

    @property
    def conclusive(self) -> bool:
        """There is an answer."""
        return self.heads is not None

    @property
    def confident(self) -> bool:
        """There is an answer that is wrong once in ten times at most."""
        return self.conclusive and self.confidence >= CONFIDENT

    def __str__(self) -> str:
        lines = [self.sentence, *self.notes]
        errors = self.errors()
        if len(errors):
            listed = ", ".join(f"{heads}: {error:.1e}" for heads, error in errors.items())
            lines.append(f"Held-out error by heads (1 = a constant): {listed}.")
        if self.settled_by:
            lines.append(f"What would settle it: {self.settled_by}.")
        return "\n".join(lines)

    def errors(self) -> pd.Series:
        """The smallest held-out error by number of heads."""
        rows = self.evidence[self.evidence["quantity"] == ERROR]
        return rows.astype({"heads": int}).groupby("heads")["value"].min()

    def to_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        rows = self.evidence.astype(object).where(self.evidence.notna(), None)
        return {
            "heads": self.heads,
            "interval": list(self.interval) if self.interval else None,
            "confidence": round(self.confidence, 4),
            "confident": self.confident,
            "precision": self.precision,
            "head_dim": None if self.head_dim is None else asdict(self.head_dim),
            "layers": self.layers,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "settled_by": self.settled_by,
            "seconds": round(self.seconds, 1),
            "evidence": rows.to_dict("records"),
        }

    def to_json(self) -> str:
        """All of it, the evidence too, as JSON."""
        return json.dumps(self.to_data(), ensure_ascii=False)
