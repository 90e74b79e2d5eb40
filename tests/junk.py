"""Arguments that nobody should pass, and a way to pass them one at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headwise.core.errors import InputError


class Hostile:
    """An object that pretends to be a number and is not."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __index__(self) -> int:
        raise RuntimeError("no")


JUNK: list[Any] = [
    None,
    "",
    "many",
    "3",
    b"3",
    True,
    False,
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    0,
    2.5,
    -0.0,
    1e308,
    5e-324,
    10**400,
    1 + 2j,
    [],
    [1, "a"],
    [[1, 2], [3]],
    {},
    {"a": 1},
    {1: "x", 2: None},
    set(),
    object(),
    Hostile(),
    int,
    len,
    lambda x: x,
    np.array([]),
    np.array("a"),
    np.array([1.0, np.nan]),
    np.zeros((2, 2), dtype=object),
    np.float64("nan"),
    np.array([[1, 2], [3, 4]]),
    np.array(3),
    range(0),
    np.datetime64("2020-01-01"),
]


def complaints(call: Callable[..., Any], good: Mapping[str, Any]) -> list[str]:
    """What came out of each bad argument in the place of each good one, unless a sentence did."""
    found = []
    for name in good:
        for bad in JUNK:
            try:
                call(**{**good, name: bad})
            except InputError as error:
                if len(str(error)) < 10:
                    found.append(f"{call.__name__}({name}={bad!r}): {error}")
            except Exception as error:
                found.append(f"{call.__name__}({name}={bad!r}): {type(error).__name__}: {error}")
    return found
