"""Records as a pandas table with the notation's names."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from headwise.core.spec import from_data
from headwise.lab.kinds.all_kinds import kind_of
from headwise.lab.run import Run
from headwise.lab.work import Record


def table(records: Iterable[tuple[str, Record]]) -> pd.DataFrame:
    """One row a run and part; columns are what a person would plot or group by."""
    return pd.DataFrame([_row(part, record) for part, record in records])


def _row(part: str, record: Record) -> dict[str, Any]:
    run: Run = from_data(json.loads(record.specification))
    return {
        "part": part,
        **kind_of(run).columns(run),
        "seed": run.seed,
        "error": record.result["error"],
        "error_last": record.result["error_last"],
        "best_step": record.result["best_step"],
        **record.result.get("facts", {}),
        "diverged": record.status == "diverged",
        "engine": record.result["engine"],
        "wall_seconds": record.wall_seconds,
        "headwise_version": record.versions["headwise"],
        "finished": record.finished,
        "key": record.key,
        "specification": record.specification,
    }
