"""What an inspection found: numbers by head, errors by size and length, findings in words."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from headwise.pretrained.shown import Shown


@dataclass(repr=False)
class Inspection(Shown):
    """A table of heads, a table of errors by rank and length, and the findings in words."""

    drawn_by: ClassVar[str] = "headwise.report.inspection:draw"

    name: str
    heads: pd.DataFrame
    errors: pd.DataFrame
    findings: list[str]
    unit: str
    objective: str
    calibration: str

    @property
    def title(self) -> str:
        """What a page about it is called."""
        return f"The attention heads of {self.name}"

    def table(self) -> pd.DataFrame:
        """One row a head, all columns."""
        return self.heads

    def cells(self) -> pd.DataFrame:
        """One row a head: the query–key size needed at some output changes, ranks, importance."""
        shown = {
            "layer": "layer",
            "head": "head",
            "size_at_1pct": "size at 1 %",
            "size_at_5pct": "at 5 %",
            "size_at_10pct": "at 10 %",
            "rank_by_weights": "rank (weights)",
            "rank_by_activations": "rank (activations)",
            "entropy": "entropy",
            "importance": f"importance, {self.unit}",
            "importance_measured": "measured",
            "similarity": "similarity",
        }
        there = {name: title for name, title in shown.items() if name in self.heads}
        return self.heads[list(there)].map("{:.3g}".format).rename(columns=there)

    def sentences(self) -> list[str]:
        """The findings, and what they rest on."""
        return [f"• {finding}" for finding in self.findings] + [f"measured on {self.calibration}"]

    def to_data(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        return {
            "model": self.name,
            "calibration": self.calibration,
            "objective": self.objective,
            "unit": self.unit,
            "heads": self.heads.to_dict("records"),
            "errors": self.errors.to_dict("records"),
            "findings": self.findings,
        }
