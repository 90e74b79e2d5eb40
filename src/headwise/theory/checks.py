"""What the arguments of the theory must be, and the sentence for what they are not."""

import math
import operator

from headwise.core.errors import InputError, require

LARGEST_SIZE = 10**12
"""Beyond any network; up to here the formulas are exact enough in double precision."""


def whole(name: str, value: int, least: int = 1, most: int | None = LARGEST_SIZE) -> int:
    """`value` as a Python int from `least` to `most`, or a sentence that names it."""
    if most is None:
        accepted = f"a whole number of at least {least}"
    else:
        accepted = f"a whole number from {least} to {most:,}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} must be {accepted}, not {value!r}")
    number = operator.index(value)
    fits = number >= least and (most is None or number <= most)
    if not fits:  # Python refuses to print very long integers
        shown = str(number) if abs(number) < 10**30 else "a number of more than 30 digits"
        raise InputError(f"{name} must be {accepted}, not {shown}")
    return number


def positive(name: str, value: float, most: float = math.inf) -> float:
    """`value` as a finite float above 0 and up to `most`, or a sentence that names it."""
    accepted = "a number above 0" + ("" if math.isinf(most) else f" and up to {most:g}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {accepted}, not {value!r:.40}") from None
    require(math.isfinite(number) and 0 < number <= most, f"{name} must be {accepted}, not {value}")
    return number
