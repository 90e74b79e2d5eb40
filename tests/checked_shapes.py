"""The checker of shapes in types, as the import hook of `conftest.py` wants it."""

from collections.abc import Callable
from typing import Any, Self

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check arguments and result; of constructors, only those that take arrays.

    A specification's constructor checks its values itself, with a sentence, and must come first.
    beartype knows `Self` only in classes that it decorates whole, so what returns it is left out.
    """
    kinds = getattr(function, "__annotations__", {}).values()
    if Self in kinds:
        return function
    arrays = any(isinstance(kind, type) and issubclass(kind, AbstractArray) for kind in kinds)
    if function.__name__ == "__init__" and not arrays:
        return function
    return _checked(function)
