"""Does a value read from a file fit the type that a specification's field is annotated with?

Python does not check annotations, so a plan edited by hand to 2.5 heads would be found only where
something multiplies by it, as a traceback. Here it is found where it is read, as a sentence.
"""

import types
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}

_EXACT = 2**53  # whole numbers up to here are numbers of double precision; numpy counts on it


@cache
def field_types(cls: type) -> dict[str, Any]:
    """The annotations of a class; none where they cannot be resolved."""
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):
        return {}


def fits(value: Any, wanted: Any) -> bool:
    """Whether the value is of the type; what is not plain data is taken as fitting."""
    if wanted is Any:
        return True
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is float:
        whole = fits(value, int) and abs(value) <= _EXACT
        return whole or (isinstance(value, float) and isfinite(value))
    if wanted in _WORDS:
        return isinstance(value, wanted)
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and _fits_all(value, parts)
    if origin in (dict, Mapping):
        return isinstance(value, dict)
    if wanted is Callable or origin is Callable or getattr(origin, "__name__", "") == "Callable":
        return callable(value)
    return not _is_plain_class(wanted) or isinstance(value, wanted)


def said(wanted: Any) -> str:
    """The type in words."""
    if wanted in _WORDS:
        return _WORDS[wanted]
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(said(part) for part in parts)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is tuple:
        return f"a list of {said(parts[0])}" if parts else "a list"
    return str(getattr(wanted, "__name__", wanted))


def _fits_all(values: tuple[Any, ...], parts: tuple[Any, ...]) -> bool:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return all(fits(value, parts[0]) for value in values)
    same = len(values) == len(parts)
    return not parts or (same and all(map(fits, values, parts)))


def _is_plain_class(wanted: Any) -> bool:
    return isinstance(wanted, type) and not getattr(wanted, "_is_protocol", False)
