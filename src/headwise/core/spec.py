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

T = TypeVar("T")

_TYPE = "type"
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


def to_data(value: Any) -> Any:
    """The specification as JSON data; equal specifications give equal data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
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
    """The inverse of `to_data`; lists come back as tuples."""
    if isinstance(data, dict):
        fields = {key: from_data(item) for key, item in data.items() if key != _TYPE}
        if _TYPE not in data:
            return fields
        cls = _classes.get(data[_TYPE])
        if cls is None:
            raise InputError(f"unknown specification type {data[_TYPE]!r}")
        unknown = fields.keys() - {f.name for f in dataclasses.fields(cls)}
        if unknown:
            raise InputError(f"{data[_TYPE]} has no field {', '.join(sorted(unknown))}")
        try:
            return cls(**fields)
        except TypeError as error:
            raise InputError(f"{data[_TYPE]}: {error}") from error
    if isinstance(data, list):
        return tuple(from_data(item) for item in data)
    return data


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
