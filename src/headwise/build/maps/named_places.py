"""Places that a function's own code names: where a narrow spike has to be written down.

Sampling cannot find a spike that is narrow enough, but whoever wrote one gave it a centre: as a
literal, or as an array that the function closes over or keeps. So the numbers and arrays that a
callable refers to are collected, and the points of the box that they make up are looked at at every
scale. What they mean is not known; a point that means nothing costs a few evaluations.
"""

import functools
import types
from itertools import islice, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headwise.build.maps.sampling import Box

_MOST_OBJECTS = 2000  # that are looked into
_MOST_NUMBERS = 16  # that are tried on every axis
_MOST_PLACES = 4096
_LARGEST_ARRAY = 4096
_HUGE = 1e300


def named_places(function: Any, box: Box) -> Float[np.ndarray, "places dim"]:
    """Points of the box whose coordinates the code of `function` names, as rows or one by one."""
    dim = len(box.low)
    numbers, arrays = _referred_to(function)
    rows = [array.reshape(-1, dim) for array in arrays if array.size and array.shape[-1] == dim]
    single = dict.fromkeys(numbers + [x for array in arrays for x in array.ravel().tolist()])
    inside = [x for x in single if box.low.min() <= x <= box.high.max()][:_MOST_NUMBERS]
    if 0 < len(inside) ** dim <= _MOST_PLACES:
        rows.append(np.array(list(product(inside, repeat=dim))))
    elif inside:
        chosen = np.random.default_rng(dim).integers(len(inside), size=(_MOST_PLACES, dim))
        rows.append(np.array(inside)[chosen])
    places = np.concatenate([np.zeros((0, dim)), *rows])[: 2 * _MOST_PLACES]
    return places[((places >= box.low) & (places <= box.high)).all(1)]


def _referred_to(function: Any) -> tuple[list[float], list[np.ndarray]]:
    """Numbers and arrays among what a callable refers to, directly or through other functions."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    numbers: list[float] = []
    arrays: list[np.ndarray] = []
    while waiting and len(seen) < _MOST_OBJECTS:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        try:
            if isinstance(thing, bool | str | bytes | type | types.ModuleType):
                continue
            if isinstance(thing, int | float):
                numbers.append(float(thing) if abs(thing) < _HUGE else np.inf)
            elif isinstance(thing, torch.Tensor | np.ndarray):
                arrays += _as_array(thing)
            else:
                waiting += _parts(thing)
        except Exception:  # what does not let itself be looked into names nothing
            continue
    return numbers, arrays


def _as_array(thing: Any) -> list[np.ndarray]:
    found = np.asarray(thing.detach().cpu() if isinstance(thing, torch.Tensor) else thing, float)
    return [np.atleast_1d(found)] if 0 < found.size <= _LARGEST_ARRAY else []


def _parts(thing: Any) -> list[Any]:
    """What a function, a method, a container or an object with attributes is made of."""
    if isinstance(thing, list | tuple | set | frozenset | dict):
        values = thing.values() if isinstance(thing, dict) else thing
        few = list(islice(values, _MOST_OBJECTS))
        return [*few, np.array(few, float)] if _is_row(few) else few
    if isinstance(thing, types.CodeType):
        return list(thing.co_consts)
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, types.FunctionType):
        names = thing.__code__.co_names
        kept = [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
        used = [thing.__globals__[name] for name in names if name in thing.__globals__]
        return [thing.__code__, *kept, *used, thing.__defaults__, thing.__kwdefaults__]
    return [vars(thing)]


def _is_row(values: list[Any]) -> bool:
    plain = (type(x) in (int, float) and abs(x) < _HUGE for x in values)
    return len(values) > 0 and all(plain)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not filled yet
        return False
