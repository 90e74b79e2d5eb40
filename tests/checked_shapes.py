"""The checker of shapes in types, as the import hook of `conftest.py` wants it."""

from collections.abc import Callable
from typing import Any, get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check arguments and result of all that takes or gives arrays, and of nothing else.

    A specification's constructor checks its values itself, with a sentence, and must come first.
    """
    kinds = getattr(function, "__annotations__", {}).values()
    return _checked(function) if any(map(_has_array, kinds)) else function


def _has_array(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, AbstractArray):
        return True
    return any(map(_has_array, get_args(kind)))
