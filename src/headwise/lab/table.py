"""Records as a pandas table with the notation's names."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from headwise.core.spec import from_data
from headwise.lab.kinds import Column, find_kind, kind_of
from headwise.lab.run import Run
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
    """One row a run and part; columns are what a person would plot or group by."""
    return pd.DataFrame([_row(part, record) for part, record in records])


def column_of(name: str, kinds: Iterable[str]) -> Column:
    """What a column of a table of these kinds is called; an unknown one by its name."""
    known = [*COMMON]
    for kind in kinds:
        known += [*find_kind(kind).columns, *find_kind(kind).facts]
    return next((column for column in known if column.name == name), Column(name, name))


def _row(part: str, record: Record) -> dict[str, Any]:
    run: Run = from_data(json.loads(record.specification))
    return {
        "part": part,
        "kind": run.kind,
        **kind_of(run).describe(run),
        "seed": run.seed,
        "error": record.result["error"],
        "unit": record.result["unit"],
        "error_last": record.result["error_last"],
        "best_step": record.result["best_step"],
        **record.result.get("facts", {}),
        "diverged": record.status == "diverged",
        "engine": record.result["engine"],
        "wall_seconds": record.wall_seconds,
        "cpu_seconds": record.cpu_seconds,
        "cpu": record.cpu,
        "headwise_version": record.versions["headwise"],
        "finished": record.finished,
        "key": record.key,
        "specification": record.specification,
    }
