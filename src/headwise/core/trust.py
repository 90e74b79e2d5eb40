"""Whose code may run: modules that the user named, never ones that a data file names.

A task in a JSON file or a row of a store can hold 'module:function', and a store the address of a
study. Importing a module runs it, so such a name stays text unless the user chose its module: by
`--trust MODULE`, by typing a study's address, or in Python by making the specification.
"""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from headwise.core.errors import InputError

_trusted: set[str] = set()
_reading: ContextVar[bool] = ContextVar("reading data", default=False)


def trust(modules: Iterable[str]) -> None:
    """Let these modules, and those inside them, be imported in this process by name."""
    _trusted.update(modules)


def look_here() -> None:
    """Find modules that the user names in the current folder, too, as `python -m` does."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    importlib.invalidate_caches()


def is_trusted(place: str) -> bool:
    """May what 'module:name' names be imported?"""
    module = place.partition(":")[0]
    parts = module.split(".")
    inside = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return not inside.isdisjoint(_trusted)


def require_trusted(place: str) -> None:
    """Refuse to import what only a file names."""
    if not is_trusted(place):
        module = place.partition(":")[0]
        raise InputError(
            f"a file names code, {place!r}, and nothing is imported because a file says so; if "
            f"you know the module, add --trust {module} (in Python headwise.core.trust.trust)"
        )


@contextmanager
def reading_data() -> Iterator[None]:
    """While this holds, what is made is made from data, and what it names is not the user's."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def named_by_user(place: str) -> None:
    """Trust the module of a place that was named in Python, not read from data."""
    if not _reading.get():
        trust([place.partition(":")[0]])
