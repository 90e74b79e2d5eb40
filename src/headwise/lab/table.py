"""Records as a pandas table with the notation's names."""

import hashlib
from collections.abc import Iterable
from typing import Any

import pandas as pd

from headwise.core.errors import InputError, require
from headwise.core.files import parse_json
from headwise.core.spec import from_data, unknown_types
from headwise.core.typed import fits
from headwise.lab.kinds import Column, find_kind, is_kind, kind_of
from headwise.lab.run import Run
from headwise.lab.store import damaged_row
from headwise.lab.work import Record

COMMON = (
    Column("part", "part"),
    Column("kind", "kind of run"),
    Column("seed", "seed"),
    Column("error", "error"),
    Column("unit", "unit of the error"),
    Column("error_last", "error after the last step"),
    Column("best_step", "step of the smallest error"),
    Column("diverged", "diverged"),
    Column("engine", "engine"),
    Column("wall_seconds", "time", "seconds"),
    Column("cpu_seconds", "processor time", "seconds"),
    Column("cpu", "processor"),
    Column("headwise_version", "version of headwise"),
    Column("finished", "finished at"),
    Column("key", "hash of the specification"),
    Column("specification", "specification"),
)
"""Columns that every table has, whatever the kinds of its runs."""


def table(records: Iterable[tuple[str, Record]]) -> pd.DataFrame:
    """One row a run and part; columns are what a person would plot or group by.

    A run whose task or kind is of a module that was not imported shows what its record says.
    """
    rows = []
    for part, record in records:
        try:
            rows.append(_row(part, record))
        except (InputError, KeyError, TypeError) as error:
            raise damaged_row(record.key, error) from error
    return pd.DataFrame(rows)


def column_of(name: str, kinds: Iterable[str]) -> Column:
    """What a column of a table of these kinds is called; an unknown one by its name."""
    known = [*COMMON]
    for kind in kinds:
        if is_kind(kind):
            known += [*find_kind(kind).columns, *find_kind(kind).facts]
    return next((column for column in known if column.name == name), Column(name, name))


def _row(part: str, record: Record) -> dict[str, Any]:
    found = hashlib.sha256(record.specification.encode()).hexdigest()
    require(found == record.key, "its specification is not the one that its key is the hash of")
    result = record.result
    return {
        "part": part,
        **_described(record),
        "seed": record.seed,
        "error": _number(result["error"]),
        "unit": str(result["unit"]),
        "error_last": _number(result["error_last"]),
        "best_step": result["best_step"],
        **{name: result["facts"][name] for name in result.get("facts", {})},
        "diverged": record.status == "diverged",
        "engine": str(result["engine"]),
        "wall_seconds": record.wall_seconds,
        "cpu_seconds": record.cpu_seconds,
        "cpu": record.cpu,
        "headwise_version": str(record.versions["headwise"]),
        "finished": record.finished,
        "key": record.key,
        "specification": record.specification,
    }


def _described(record: Record) -> dict[str, Any]:
    """The run's kind, and what the kind says of it, if the kind and all it holds are known."""
    data = parse_json(record.specification)
    kind = str(data["kind"])
    if not is_kind(kind) or unknown_types(data):
        return {"kind": kind}
    run = from_data(data)
    require(isinstance(run, Run), "its specification is not a run")
    return {"kind": kind, **kind_of(run).describe(run)}


def _number(value: Any) -> float | None:
    require(fits(value, float | None), f"an error is {value!r:.40}, not a number")
    return value
