"""Nested records of tensors as flat named tensors, and back: what a measurement's file holds."""

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

_LENGTH = "#"  # the entry that holds a list's length


def flat(value: Any, name: str, leave_out: frozenset[str] = frozenset()) -> dict[str, Tensor]:
    """Every tensor and array in a record, by its path; None is what is not there.

    Fields of these names are left out. Floating numbers of torch's are rounded to float32.
    """
    if value is None:
        return {}
    if isinstance(value, Tensor):
        kept = value.float() if value.is_floating_point() else value
        return {name: kept.detach().cpu().contiguous()}
    if isinstance(value, np.ndarray):
        return {name: torch.from_numpy(np.ascontiguousarray(value))}
    tensors = {}
    if isinstance(value, list):
        tensors[f"{name}.{_LENGTH}"] = torch.tensor(len(value))
        parts = {str(index): part for index, part in enumerate(value)}
    else:
        parts = {key: getattr(value, key) for key in _names(type(value)) if key not in leave_out}
    for key, part in parts.items():
        tensors |= flat(part, f"{name}.{key}", leave_out)
    return tensors


def built(kind: Any, name: str, tensors: dict[str, Tensor], **given: Any) -> Any:
    """The record of this type at this path; `given` are fields that were left out."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = next(part for part in get_args(kind) if part is not type(None))
        there = any(key == name or key.startswith(f"{name}.") for key in tensors)
        return built(inner, name, tensors, **given) if there else None
    if get_origin(kind) is list:
        count = int(tensors[f"{name}.{_LENGTH}"])
        return [built(get_args(kind)[0], f"{name}.{i}", tensors) for i in range(count)]
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        parts = {
            key: given[key] if key in given else built(hints[key], f"{name}.{key}", tensors)
            for key in _names(kind)
        }
        return kind(**parts)
    found = tensors[name]
    if _of_numpy(kind):
        return found.numpy()
    return found.double() if found.is_floating_point() else found


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)


def _of_numpy(kind: Any) -> bool:
    """jaxtyping's types know what they annotate."""
    return getattr(kind, "array_type", kind) is np.ndarray
