"""Records as a pandas table with the notation's names."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from headwise.lab.spec import Run
from headwise.lab.work import Record
from headwise.spec import from_data


def table(records: Iterable[tuple[str, Record]]) -> pd.DataFrame:
    """One row a run and part; columns are what a person would plot or group by."""
    return pd.DataFrame([_row(part, record) for part, record in records])


def _row(part: str, record: Record) -> dict[str, Any]:
    run: Run = from_data(json.loads(record.specification))
    layer, params = run.net.layers[0], run.net.params()
    return {
        "part": part,
        "heads": layer.heads,
        "head_dim": layer.v_dim,
        "length": run.task.length,
        "intrinsic_dim": run.task.intrinsic_dim,
        "token_dim": run.task.token_dim,
        "width": run.net.embed.widths[0],
        "layers": len(run.net.layers),
        "residual": run.net.residual,
        "norm": run.net.norm,
        "params": params["total"],
        "params_mlp": params["mlp"],
        "steps": run.training.steps,
        "batch": run.training.batch,
        "rate": run.training.rate,
        "seed": run.seed,
        "nmse": record.result["nmse"],
        "nmse_last": record.result["nmse_last"],
        "best_step": record.result["best_step"],
        "diverged": record.status == "diverged",
        "engine": record.result["engine"],
        "wall_seconds": record.wall_seconds,
        "headwise_version": record.versions["headwise"],
        "finished": record.finished,
        "key": record.key,
        "specification": record.specification,
    }
