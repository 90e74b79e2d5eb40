"""Finished descents on disk, so that an interrupted probe goes on where it was."""

import json
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.core.errors import require
from headwise.core.files import read_json, write_file
from headwise.core.typed import fits

_TABLES = (
    "errors",
    "train_errors",
    "removal_costs",
    "token_counts",
    "fixed_readers",
    "likeness",
    "breadth",
)
_KIND = "headwise probe, version 5"
_POOLED, _FORMS = "without attention, seed {}", "linear forms, seed {}"


class DescentFile:
    """A JSON file, written whole or not at all; without a path nothing is kept."""

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        self._path = None if path is None else Path(path)
        self._lock = Lock()
        self._content: dict[str, Any] = {"kind": _KIND, "probes": {}}
        if self._path is not None and self._path.exists():
            self._content = _read(self._path)
        self._descents: dict[str, Any] = self._content["probes"].setdefault(fingerprint, {})

    def get(self, plan: DescentPlan) -> Descent | None:
        """The descent of this plan, if it was finished before."""
        found = self._descents.get(_key(plan))
        if found is None:
            return None
        kept = Descent(plan)
        for name in _TABLES:
            getattr(kept, name).update(_by_heads(found[name]))
        return kept

    def pooled(self, seed: int) -> float | None:
        """The error without attention, if it was measured before."""
        return self._descents.get(_POOLED.format(seed))

    def forms(self, seed: int) -> float | None:
        """The error of linear forms, if it was measured before."""
        return self._descents.get(_FORMS.format(seed))

    def put_pooled(self, seed: int, error: float | None) -> None:
        """Keep the error without attention."""
        self._put_error(_POOLED.format(seed), error)

    def put_forms(self, seed: int, error: float | None) -> None:
        """Keep the error of linear forms."""
        self._put_error(_FORMS.format(seed), error)

    def _put_error(self, name: str, error: float | None) -> None:
        if self._path is None or error is None:
            return
        with self._lock:
            self._descents[name] = error
            write_file(self._path, json.dumps(self._content))

    def put(self, descent: Descent) -> None:
        """Keep a finished descent."""
        if self._path is None or not descent.finished:
            return
        with self._lock:
            self._descents[_key(descent.plan)] = {name: getattr(descent, name) for name in _TABLES}
            write_file(self._path, json.dumps(self._content))


def _by_heads(table: dict[str, float]) -> dict[int, float]:
    return {int(heads): value for heads, value in table.items()}


def _key(plan: DescentPlan) -> str:
    return json.dumps(asdict(plan), sort_keys=True)


def _read(path: Path) -> dict[str, Any]:
    content = read_json(path)
    known = isinstance(content, dict) and content.get("kind") == _KIND
    probes = content.get("probes") if known else None
    require(
        isinstance(probes, dict)
        and all(isinstance(descents, dict) for descents in probes.values())
        and all(_is_kept(*each) for descents in probes.values() for each in descents.items()),
        f"{path} is not the state of a probe, or it is damaged; name another file",
    )
    return content


def _is_kept(name: str, data: Any) -> bool:
    """The error of a control, or a descent: tables by number of heads, of numbers."""
    if name.startswith((_POOLED.format(""), _FORMS.format(""))):
        return bool(fits(data, float))
    tables = [data.get(name) for name in _TABLES] if isinstance(data, dict) else [None]
    return all(
        isinstance(table, dict)
        and all(heads.isdecimal() and len(heads) < 9 for heads in table)
        and all(fits(value, float) for value in table.values())
        for table in tables
    )
