"""What the arguments of the theory must be, and the sentence for what they are not."""

import math
import operator
from typing import Any

import numpy as np

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
        raise InputError(f"{name} must be {accepted}, not {shown(value)}")
    try:
        count = operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be {accepted}, not {shown(value)}") from None
    fits = count >= least and (most is None or count <= most)
    if not fits:  # Python refuses to print very long integers
        text = str(count) if abs(count) < 10**30 else "a number of more than 30 digits"
        raise InputError(f"{name} must be {accepted}, not {text}")
    return count


def positive(name: str, value: float, most: float = math.inf) -> float:
    """`value` as a finite float above 0 and up to `most`, or a sentence that names it."""
    accepted = "a number above 0" + ("" if math.isinf(most) else f" and up to {most:g}")
    found = _real(value)
    if found is None or not (math.isfinite(found) and 0 < found <= most):
        raise InputError(f"{name} must be {accepted}, not {shown(value)}")
    return found


def number(name: str, value: float) -> float:
    """`value` as a finite float, or a sentence that names it."""
    found = _real(value)
    if found is None or not math.isfinite(found):
        raise InputError(f"{name} must be a finite number, not {shown(value)}")
    return found


def not_negative(name: str, value: float) -> float:
    """`value` as a finite float that is at least 0, or a sentence that names it."""
    found = _real(value)
    if found is None or not (math.isfinite(found) and found >= 0):
        raise InputError(f"{name} must be a number of at least 0, not {shown(value)}")
    return found


def numbers(name: str, values: Any) -> np.ndarray:
    """`values` as a flat array of finite floats, or a sentence that names them."""
    try:
        array = np.asarray(values)
        kind = array.dtype.kind
        found = array.astype(float).ravel() if kind in "iuf" else None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        found = None
    if found is None or not np.isfinite(found).all():
        raise InputError(f"{name} must be finite numbers, not {shown(values)}")
    return found


def scores_array(name: str, values: Any) -> np.ndarray:
    """`values` as an array of floats; −inf marks what is masked, NaN and +inf are refused."""
    try:
        array = np.asarray(values)
        found = array.astype(float) if array.dtype.kind in "iuf" else None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        found = None
    if found is None:
        raise InputError(f"{name} must be an array of numbers, not {shown(values)}")
    require(
        not np.isnan(found).any() and not np.isposinf(found).any(),
        f"{name} holds NaN or +inf; only −inf (a masked key) is accepted",
    )
    return found


def sequence(name: str, value: Any, kind: type, what: str) -> list[Any]:
    """`value` as a list whose entries all are of one kind, or a sentence that names it."""
    listed = isinstance(value, list | tuple)
    if not listed or not all(isinstance(each, kind) for each in value):
        raise InputError(f"{name} must be a list of {what}, not {shown(value)}")
    return list(value)


def one_of(name: str, value: Any, accepted: tuple[Any, ...]) -> None:
    """Refuse what is none of the accepted words or numbers."""
    fits = any(type(value) is type(each) and value == each for each in accepted)
    if not fits:
        words = " or ".join(map(repr, accepted))
        raise InputError(f"{name} must be {words}, not {shown(value)}")


def shown(value: Any) -> str:
    """A value as a sentence quotes it: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # a value that cannot be printed is still refused with a sentence
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _real(value: Any) -> float | None:
    """A real number of any library as a float; None for booleans, text and everything else."""
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
