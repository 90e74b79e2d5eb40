"""What an inspection found: numbers by head, errors by size and length, findings in words."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd

from headwise.pretrained._evaluate import damage_shown
from headwise.pretrained.closeup.heads import HeadProfiles
from headwise.pretrained.shown import Shown, called


@dataclass(repr=False)
class Inspection(Shown):
    """Tables of heads, of errors by rank and length, of losses by size; the findings in words."""

    drawn_by: ClassVar[str] = "headwise.report.inspection:draw"
    keys: ClassVar[int] = 2

    name: str
    heads: pd.DataFrame
    errors: pd.DataFrame
    sizes: pd.DataFrame
    findings: list[str]
    unit: str
    objective: str
    calibration: str
    warnings: list[str] = field(default_factory=list)
    profiles: HeadProfiles = field(default_factory=HeadProfiles)
    agreement: float | None = None  # rank correlation of measured importance on as much other text

    @property
    def title(self) -> str:
        """What a page about it is called."""
        return f"The attention heads of {called(self.name)}"

    def to_pandas(self) -> pd.DataFrame:
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
        """The findings, how to read the table, and what both rest on."""
        return [
            *(f"warning: {warning}" for warning in self.warnings),
            *(f"• {finding}" for finding in self.findings),
            *self.losses(),
            "sizes are the query–key dimensions at which a head's output changes by so much",
            f"measured on {self.calibration}",
        ]

    def losses(self) -> list[str]:
        """What is lost at the measured shares of the attention's parameters."""
        measured = self.sizes.dropna(subset="measured")
        if measured.empty:
            return []
        said = [
            f"{damage_shown(row.measured)} at {100 * row.kept:.0f} %"
            for row in measured.itertuples()
        ]
        return [
            f"damage when compressed ({self.objective}, {self.unit}): {', '.join(said)} kept; "
            "compress also tries its cuts beforehand, and mostly loses less"
        ]

    def to_data(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        return {
            "model": self.name,
            "calibration": self.calibration,
            "objective": self.objective,
            "unit": self.unit,
            "heads": self.heads.to_dict("records"),
            "errors": self.errors.to_dict("records"),
            "sizes": self.sizes.astype(object).where(self.sizes.notna(), None).to_dict("records"),
            "importance_agreement": self.agreement,
            "findings": self.findings,
            "warnings": self.warnings,
        }
