"""Specifications: frozen dataclasses with one canonical JSON form and one hash.

A result in headwise is a function of its specification and seed. For that a specification must
mean the same thing on every machine and in every version, so it is plain data: numbers, strings,
tuples, and other specifications. Its JSON form names the class, sorts the keys and writes equal
numbers equally; the SHA-256 of that text identifies it.
"""

import dataclasses
import hashlib
import json
import math
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from headwise.core.errors import InputError
from headwise.core.trust import reading_data
from headwise.core.typed import field_types, fits, said

T = TypeVar("T")

_ADDED = "added"

DEEPEST = 60
"""Specifications nest a few levels; data nested deeper are none."""

_TYPE = "type"
_SHOWN = 60  # characters of a wrong value in a sentence
_classes: dict[str, type] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def spec(cls: type[T]) -> type[T]:
    """Class decorator: a frozen, keyword-only dataclass that JSON and hashing know by name."""
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    name = made.__name__
    if name in _classes and _classes[name].__module__ != made.__module__:
        raise TypeError(f"two specifications are called {name}")
    _classes[name] = made
    return made


def added(default: Any) -> Any:
    """The default of a field that a specification did not have at first.

    While the field has it, its JSON form and its hash are what they were without the field, so
    that results stored before are found again.
    """
    return dataclasses.field(default=default, metadata={_ADDED: True})


def to_data(value: Any) -> Any:
    """The specification as JSON data; equal specifications give equal data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: to_data(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if not (f.metadata.get(_ADDED) and getattr(value, f.name) == f.default)
        }
        return {_TYPE: type(value).__name__, **fields}
    if isinstance(value, dict):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float | np.integer | np.floating):
        return _number(float(value)) if not isinstance(value, int | np.integer) else int(value)
    raise InputError(
        f"a specification holds numbers, strings, tuples and specifications, not {value!r}; "
        "name a function by its import path, 'module:function'"
    )


def from_data(data: Any) -> Any:
    """The inverse of `to_data`; lists come back as tuples.

    Data may come from anywhere: whatever is not the data of a specification gets a sentence, and
    nothing is imported that they name (see `headwise.core.trust`).
    """
    with reading_data():
        return _from_data(data, 0)


def unknown_types(data: Any, depth: int = 0) -> set[str]:
    """The types that data name and nobody here has made known: of modules not imported."""
    if depth > DEEPEST:
        raise InputError(f"it is nested more than {DEEPEST} deep")
    items = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    found: set[str] = set().union(*(unknown_types(item, depth + 1) for item in items))
    if isinstance(data, dict) and isinstance(data.get(_TYPE), str):
        found |= {data[_TYPE]} - _classes.keys()
    return found


def _from_data(data: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise InputError(f"it is nested more than {DEEPEST} deep")
    if isinstance(data, list):
        return tuple(_from_data(item, depth + 1) for item in data)
    if not isinstance(data, dict):
        return data
    fields = {key: _from_data(item, depth + 1) for key, item in data.items() if key != _TYPE}
    return fields if _TYPE not in data else _made(data[_TYPE], fields)


def _made(name: Any, fields: dict[str, Any]) -> Any:
    """The specification of that name with these fields."""
    cls = _classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InputError(f"unknown specification type {shortened(name)}")
    unknown = fields.keys() - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        raise InputError(
            f"{name} has no field {', '.join(each[:_SHOWN] for each in sorted(unknown))}"
        )
    wanted = field_types(cls)
    for field, value in fields.items():
        if field in wanted and not fits(value, wanted[field]):
            raise InputError(
                f"{name}: {field} is {shortened(value)}; accepted is {said(wanted[field])}"
            )
    try:
        return cls(**fields)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InputError(f"{name}: {error}") from error


def shortened(value: Any) -> str:
    """A value as a sentence can hold it, whatever it is."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # Python refuses to print very long integers
        return f"a very large {type(value).__name__}"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def canonical_json(value: Any) -> str:
    """The one JSON text of a specification."""
    return json.dumps(to_data(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def spec_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _number(value: float) -> float | int:
    """`1.0` and `1` are the same number, so they must be the same text."""
    if not math.isfinite(value):
        raise InputError(f"a specification cannot hold {value}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
