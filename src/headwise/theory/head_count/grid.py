"""The lower bound of `too_few` over heads × lengths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headwise.core.errors import require
from headwise.core.lazy import Drawn
from headwise.core.lines import in_columns, wrapped
from headwise.core.shown import Tabled
from headwise.theory.bound import BoundVerdict, rounded_down
from headwise.theory.checks import positive, shown, whole
from headwise.theory.directed import floor_float
from headwise.theory.head_count.common import feature_sizes
from headwise.theory.head_count.too_few import SET_FRACTION, exponent_formula


@dataclass(frozen=True, kw_only=True)
class PhaseMap(Drawn, Tabled):
    """The lower bound's exponent over heads × lengths; NaN where it is vacuous or silent."""

    drawn_by: ClassVar[str] = "headwise.report.constructions:draw_phase_map"

    intrinsic_dim: int
    head_dim: int
    set_fraction: float
    heads: Int[np.ndarray, " heads"]
    lengths: Int[np.ndarray, " lengths"]
    exponent: Float[np.ndarray, "heads lengths"]

    def records(self) -> list[dict[str, Any]]:
        """One row a cell, ready for JSON."""
        return [
            {
                "heads": int(heads),
                "length": int(length),
                "exponent": None if np.isnan(value) else float(value),
                "verdict": str(self._verdict(int(heads), float(value))),
            }
            for heads, row in zip(self.heads, self.exponent, strict=True)
            for length, value in zip(self.lengths, row, strict=True)
        ]

    def __str__(self) -> str:
        words = {BoundVerdict.NOT_APPLICABLE: "enough", BoundVerdict.VACUOUS: "–"}
        cells = [["heads", *(f"T = {length}" for length in self.lengths)]]
        for heads, row in zip(self.heads, self.exponent, strict=True):
            verdicts = (self._verdict(int(heads), float(value)) for value in row)
            shown = (words.get(v) or rounded_down(k) for v, k in zip(verdicts, row, strict=True))
            cells.append([str(heads), *shown])
        return "\n".join(
            [
                *wrapped(
                    f"exponent k of params = Ω(1/error^k): {self.intrinsic_dim} features, heads of "
                    f"dimension {self.head_dim}, |S_i| ≥ {self.set_fraction:g}·T"
                ),
                *in_columns(cells),
                *wrapped("“–”: the bound is vacuous; “enough”: as many heads as features"),
            ]
        )

    def _verdict(self, heads: int, value: float) -> BoundVerdict:
        if heads >= self.intrinsic_dim:
            return BoundVerdict.NOT_APPLICABLE
        return BoundVerdict.VACUOUS if np.isnan(value) else BoundVerdict.HOLDS


def phase_map(
    heads: Sequence[int] = (1, 2, 3, 4, 5),
    lengths: Sequence[int] = (8, 16, 32, 64, 128, 256, 512),
    *,
    intrinsic_dim: int,
    head_dim: int,
    set_fraction: float = SET_FRACTION,
) -> PhaseMap:
    """`lower_bound_exponent` on a grid."""
    for name, given in (("heads", heads), ("lengths", lengths)):
        listed = isinstance(given, list | tuple | range)
        require(
            listed and len(given) > 0,
            f"{name} must be a list of at least one whole number, not {shown(given)}",
        )
    head_axis = np.array([whole("heads", count) for count in heads])
    length_axis = np.array([feature_sizes(intrinsic_dim, length)[1] for length in lengths])
    intrinsic_dim = whole("intrinsic_dim", intrinsic_dim)
    head_dim = whole("head_dim", head_dim)
    set_fraction = positive("set_fraction", set_fraction, most=1)
    exponent = np.array(
        [
            [
                floor_float(
                    exponent_formula(int(count), intrinsic_dim, int(length), head_dim, set_fraction)
                )
                for length in length_axis
            ]
            for count in head_axis
        ]
    )
    informative = (head_axis[:, None] < intrinsic_dim) & (exponent > 0)
    return PhaseMap(
        intrinsic_dim=intrinsic_dim,
        head_dim=head_dim,
        set_fraction=set_fraction,
        heads=head_axis,
        lengths=length_axis,
        exponent=np.where(informative, exponent, np.nan),
    )
