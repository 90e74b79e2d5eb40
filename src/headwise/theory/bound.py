"""`Bound`: one answer of the theory, with what it rests on.

Every function of `headwise.theory` that states a result returns a `Bound`, so that a caller can
tell a result from a formula evaluated outside its range: that is called vacuous, never printed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import StrEnum
from typing import Any, Literal

from headwise.core.lines import wrapped
from headwise.core.shown import Printed


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
    """A result of the theory: `value` is None exactly where it is vacuous or not applicable.

    A bound from one `side` is printed rounded to that side.
    """

    quantity: str
    value: int | float | None
    verdict: BoundVerdict
    statement: str
    source: str
    status: Status
    assumptions: tuple[str, ...] = ()
    side: Literal["lower", "upper", "neither"] = "neither"

    def __post_init__(self) -> None:
        says_nothing = self.verdict in (BoundVerdict.VACUOUS, BoundVerdict.NOT_APPLICABLE)
        if (self.value is None) != says_nothing:
            raise ValueError(f"a bound that is {self.verdict} cannot have the value {self.value}")

    @property
    def log10(self) -> float | None:
        """Decimal logarithm of a positive value, for numbers that no float can hold."""
        if self.value is None or self.value <= 0:
            return None
        near = math.log10(self.value)
        if self.side == "neither" or (near.is_integer() and self.value == 10 ** int(near)):
            return near
        return math.nextafter(near, -math.inf if self.side == "lower" else math.inf)

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
        shown = str(self.verdict) if self.value is None else _SHOWN[self.side](self.value)
        lines = [f"{self.quantity}: {shown}", *wrapped(self.statement, "  ")]
        lines += wrapped(f"Source: {self.source} ({self.status}; {self.verdict}).", "  ")
        if self.assumptions:
            lines.append("  Assumes:")
            for sentence in self.assumptions:
                lines += wrapped(sentence, "  - ")
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


def rounded_down(value: int | float, digits: int = 4) -> str:
    """A few digits of a lower bound: what is printed is still a lower bound."""
    return _to_digits(value, digits, ROUND_FLOOR)


def rounded_up(value: int | float, digits: int = 4) -> str:
    """A few digits of an upper bound: what is printed is still an upper bound."""
    return _to_digits(value, digits, ROUND_CEILING)


def _to_digits(value: int | float, digits: int, rounding: str) -> str:
    if isinstance(value, int) and abs(value) >= 10**9:
        return f"{Context(prec=digits, rounding=rounding).create_decimal(value):.{digits - 1}e}"
    if isinstance(value, int) or not math.isfinite(value):
        return readable(value)
    rounded = Context(prec=digits, rounding=rounding).create_decimal(float(value))
    return f"{float(rounded):.{digits}g}"


_SHOWN: dict[str, Callable[[int | float], str]] = {
    "lower": rounded_down,
    "upper": rounded_up,
    "neither": readable,
}
