"""Finished descents on disk, so that an interrupted probe goes on where it was."""

import json
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.core.errors import InputError
from headwise.core.files import write_file

_KIND = "headwise probe, version 2"
_POOLED = "without attention, seed {}"


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
        return Descent(
            plan,
            errors=_by_heads(found["errors"]),
            train_errors=_by_heads(found["train_errors"]),
            removal_costs=_by_heads(found["removal_costs"]),
            token_counts=_by_heads(found["token_counts"]),
        )

    def pooled(self, seed: int) -> float | None:
        """The error without attention, if it was measured before."""
        return self._descents.get(_POOLED.format(seed))

    def put_pooled(self, seed: int, error: float | None) -> None:
        """Keep the error without attention."""
        if self._path is None or error is None:
            return
        with self._lock:
            self._descents[_POOLED.format(seed)] = error
            write_file(self._path, json.dumps(self._content))

    def put(self, descent: Descent) -> None:
        """Keep a finished descent."""
        if self._path is None or not descent.finished:
            return
        with self._lock:
            self._descents[_key(descent.plan)] = {
                name: getattr(descent, name)
                for name in ("errors", "train_errors", "removal_costs", "token_counts")
            }
            write_file(self._path, json.dumps(self._content))


def _by_heads(table: dict[str, float]) -> dict[int, float]:
    return {int(heads): value for heads, value in table.items()}


def _key(plan: DescentPlan) -> str:
    return json.dumps(asdict(plan), sort_keys=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as the state of a probe: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise InputError(f"{path} is not the state of a probe; name another file")
    return content
