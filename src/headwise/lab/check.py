"""Mistakes in a study are found before its runs, not at the report.

The runs are looked at, and everything that will be computed from the results is computed from a
made-up table of the same columns: from all of it, from a table without rows, with one row, with
every other row, and from each part alone, as after an interrupted run.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from headwise.core.errors import InputError, require
from headwise.core.spec import canonical_json, from_data
from headwise.lab.kinds import kind_of
from headwise.lab.run import Run
from headwise.lab.study import Conclusion, Figure, IntervalFigure, Study, Verdict
from headwise.lab.summary import summarise

_INTERVAL_COLUMNS = ("label", "panel", "group", "mean", "low", "high", "seeds")


def check_study(study: Study, parts: Mapping[str, Sequence[Run]]) -> None:
    """Refuse, with a sentence, a study whose runs of a tier could not be done or reported."""
    try:
        _check_study(study, parts)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a field that is nothing of what a study holds
        raise InputError(f"study {study.name} has a mistake ({_say(error)})") from error


def _check_study(study: Study, parts: Mapping[str, Sequence[Run]]) -> None:
    where = f"study {study.name}"
    require(len(study.parts) > 0, f"{where} has no parts")
    require(len(parts) > 0, f"{where}: this tier has no parts")
    for part, runs in parts.items():
        require(
            part in study.parts,
            f"{where}: the tier has a part {part!r}, which `parts` gives no title; it has "
            f"{', '.join(study.parts)}",
        )
        require(len(runs) > 0, f"{where}: part {part!r} has no runs")
        _check_runs(f"{where}, part {part!r}", runs)
    names = [figure.name for figure in study.figures]
    require(len(set(names)) == len(names), f"{where}: two figures have the same name")
    require("runs" not in names, f"{where}: runs.csv holds the runs; call the figure otherwise")
    table = made_up_table(parts)
    _check_columns(study, table)
    _check_functions(study, table)


def made_up_table(parts: Mapping[str, Sequence[Run]]) -> pd.DataFrame:
    """A result table with the columns that these runs will have, and numbers at random."""
    rng = np.random.default_rng(0)
    rows = []
    for part, runs in parts.items():
        for run in runs:
            kind = kind_of(run)
            error = float(10.0 ** rng.uniform(-4, 0))
            rows.append(
                {
                    "part": part,
                    "kind": kind.name,
                    **kind.describe(run),
                    **{fact.name: float(rng.uniform(0.1, 1)) for fact in kind.facts},
                    "seed": run.seed,
                    "error": error,
                    "unit": kind.error.unit,
                    "error_last": error,
                    "best_step": 1,
                    "diverged": False,
                    "engine": "",
                    "wall_seconds": 1.0,
                    "cpu_seconds": 1.0,
                    "cpu": "",
                    "headwise_version": "",
                    "finished": "",
                    "key": "",
                    "specification": "",
                }
            )
    return pd.DataFrame(rows)


def _check_runs(where: str, runs: Sequence[Run]) -> None:
    keys, seen = set(), set()
    for run in runs:
        require(isinstance(run, Run), f"{where}: {run!r} is not a headwise.lab.run.Run")
        try:
            kind = kind_of(run)
            key = run.key
            kind.check(run)
            described = kind.describe(run)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        except Exception as error:
            raise InputError(
                f"{where}: kind {run.kind!r} cannot describe a run ({_say(error)})"
            ) from error
        declared = {column.name for column in kind.columns}
        require(
            set(described) == declared,
            f"{where}: kind {run.kind!r} declares the columns {', '.join(sorted(declared))}, and "
            f"describes a run by {', '.join(sorted(described))}",
        )
        require(key not in keys, f"{where}: a run is there twice, seed {run.seed}")
        keys.add(key)
        types = (run.kind, *map(type, (run.task, run.net, run.training, run.measure)))
        if types not in seen:  # what is stored must be readable
            seen.add(types)
            _check_can_be_read(where, run)


def _check_can_be_read(where: str, run: Run) -> None:
    try:
        again = from_data(json.loads(canonical_json(run)))
    except InputError as error:
        raise InputError(f"{where}: {error}; decorate its class with @spec") from error
    require(again == run, f"{where}: a run does not come back from JSON as it was: {run}")


def _check_columns(study: Study, table: pd.DataFrame) -> None:
    drawn = [figure for figure in study.figures if isinstance(figure, Figure)]
    uses = {"rows": study.rows, "columns": (study.columns,)}
    uses |= {f"figure {figure.name}": figure.columns for figure in drawn}
    uses["setting"] = study.settings
    for use, names in uses.items():
        unknown = [name for name in names if name not in table.columns]
        require(
            not unknown,
            f"study {study.name}: {use} names the column {', '.join(unknown)}, which its runs "
            f"do not have; they have {', '.join(table.columns)}",
        )
    for figure in drawn:
        unknown = [part for part in figure.panels if part not in study.parts]
        require(
            not unknown,
            f"study {study.name}: figure {figure.name} has a panel for {', '.join(unknown)}, "
            f"which is no part; the parts are {', '.join(study.parts)}",
        )
        require(
            not figure.x_log
            or pd.api.types.is_numeric_dtype(table[figure.x].dropna().infer_objects()),
            f"study {study.name}: figure {figure.name} has a logarithmic axis, and {figure.x} is "
            "not a number",
        )


def _check_functions(study: Study, table: pd.DataFrame) -> None:
    for results in _tables(table):
        found = _call(study, "finding", study.finding, results)
        _returned(study, "finding", found, Conclusion)
        for claim in study.claims:
            what = f"the claim {claim.statement!r}"
            _returned(study, what, _call(study, what, claim.check, results), Verdict)
        for figure in study.figures:
            if isinstance(figure, IntervalFigure):
                what = f"figure {figure.name}"
                data = _call(study, what, figure.data, results)
                _has_columns(study, what, data, _INTERVAL_COLUMNS if len(data) else ())
    for figure in study.figures:
        if isinstance(figure, IntervalFigure) or figure.references is None:
            continue
        mine = table[table["part"].isin(list(figure.panels))]
        if len(mine):
            what = f"the references of figure {figure.name}"
            made = _call(study, what, figure.references, summarise(mine, study.settings))
            _has_columns(study, what, made, ("label", "error_min", figure.x))
    if study.published is not None:
        made = _call(study, "published", lambda _: study.published(), table)  # type: ignore[misc]
        _has_columns(study, "published", made, ("part", "error"))


def _tables(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    yield table
    yield table.iloc[:0]
    yield table.iloc[:1]
    yield table.iloc[::2]
    parts = table["part"].unique()
    if len(parts) > 1:
        for part in parts:
            yield table[table["part"] == part]


def _call(
    study: Study, what: str, function: Callable[[pd.DataFrame], Any], results: pd.DataFrame
) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(results.copy())
    except (Exception, SystemExit) as error:
        raise InputError(
            f"study {study.name}: {what} cannot be computed from a table of {len(results)} rows "
            f"({_say(error)}); a table may hold every run, some or none"
        ) from error


def _returned(study: Study, what: str, found: object, wanted: type) -> None:
    require(
        isinstance(found, wanted),
        f"study {study.name}: {what} gives {type(found).__name__}, not {wanted.__name__}",
    )


def _has_columns(study: Study, what: str, data: pd.DataFrame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in data.columns]
    require(not missing, f"study {study.name}: {what} lacks the column {', '.join(missing)}")


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
