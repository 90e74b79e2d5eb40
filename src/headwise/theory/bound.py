"""`Bound`: one answer of the theory, with what it rests on.

Every function of `headwise.theory` that states a result returns a `Bound`, so that a caller can
tell a result from a formula evaluated outside its range: that is called vacuous, never printed.
"""

import math
import shutil
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headwise.core.shown import Printed

_PRINTED_WIDTH = 92
_LEAST_WIDTH = 30


class BoundVerdict(StrEnum):
    """What the theory says about the case asked for."""

    HOLDS = "holds"
    FAILS = "fails"  # a condition that the case does not meet
    ESTIMATE = "estimate"  # an approximation, neither an upper nor a lower bound
    RATE = "rate with unknown constants"
    VACUOUS = "vacuous"  # the formula applies and forbids nothing
    NOT_APPLICABLE = "not applicable"


class Status(StrEnum):
    """How much one may rely on it."""

    PROVED = "proved"  # a theorem of the paper named as the source
    DERIVED = "derived"  # our own, with the proof beside the code
    CONJECTURED = "conjectured"


@dataclass(frozen=True, kw_only=True)
class Bound(Printed):
    """A result of the theory: `value` is None exactly where it is vacuous or not applicable."""

    quantity: str
    value: int | float | None
    verdict: BoundVerdict
    statement: str
    source: str
    status: Status
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        says_nothing = self.verdict in (BoundVerdict.VACUOUS, BoundVerdict.NOT_APPLICABLE)
        if (self.value is None) != says_nothing:
            raise ValueError(f"a bound that is {self.verdict} cannot have the value {self.value}")

    @property
    def log10(self) -> float | None:
        """Decimal logarithm of a positive value, for numbers that no float can hold."""
        return math.log10(self.value) if self.value is not None and self.value > 0 else None

    def to_data(self) -> dict[str, Any]:
        """The bound as JSON data; `log10` is there for readers whose numbers are floats."""
        return {
            "quantity": self.quantity,
            "value": self.value,
            "log10": self.log10,
            "verdict": str(self.verdict),
            "status": str(self.status),
            "statement": self.statement,
            "source": self.source,
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        shown = str(self.verdict) if self.value is None else readable(self.value)
        lines = [f"{self.quantity}: {shown}", *_wrapped(self.statement, "  ")]
        lines += _wrapped(f"Source: {self.source} ({self.status}; {self.verdict}).", "  ")
        if self.assumptions:
            lines.append("  Assumes:")
            for sentence in self.assumptions:
                lines += _wrapped(sentence, "  - ")
        return "\n".join(lines)


def readable(value: int | float) -> str:
    """A number as a person writes it: 0.4211, 1,024 or 3.21e+45, whatever its size."""
    if isinstance(value, int) and abs(value) < 10**9:
        return f"{value:,}"
    if isinstance(value, int) and abs(value) >= 10**15:
        exponent = math.floor(math.log10(abs(value)))
        exponent -= 10**exponent > abs(value)  # the logarithm of 10¹⁵ − 1 rounds to 15
        return f"{value // 10 ** (exponent - 2) / 100:.2f}e+{exponent}"
    return f"{value:.4g}"


def _wrapped(text: str, indent: str) -> list[str]:
    """Lines no wider than the terminal, where there is one, and than a person reads well."""
    columns = shutil.get_terminal_size((_PRINTED_WIDTH, 24)).columns
    return textwrap.wrap(
        text,
        max(_LEAST_WIDTH, min(_PRINTED_WIDTH, columns)),
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
    )
