"""From a store to a folder: report.html, figures as PNG and SVG, and their data."""

import os
import tempfile
from pathlib import Path

from headwise.errors import InputError, require
from headwise.lab.store import Store
from headwise.lab.studies import find_study
from headwise.lab.table import table
from headwise.report.figures import draw, figure_data
from headwise.report.page import render


def build_report(store: Store, study_name: str, tier: str, folder: Path) -> Path:
    """Write the report of a study's tier from the store alone; returns the page's path."""
    study = find_study(study_name)
    study.tier(tier)
    results = table(store.records(study_name, tier))
    require(
        len(results) > 0,
        f"{store.path} holds no finished run of {study_name}, tier {tier}; "
        f"run: headwise study run {study_name} --tier {tier} --store {store.path}",
    )
    planned = {(name, level): total for name, level, _, total in store.progress()}
    published = study.published()
    charts = {}
    files: dict[str, bytes] = {}
    for figure in study.figures:
        chart = draw(study, figure, results, published)
        if chart is None:
            continue
        charts[figure.name] = chart
        data = figure_data(study, figure, results, published).to_csv(index=False)
        files[f"{figure.name}.csv"] = data.encode()
        for kind in ("png", "svg"):
            with tempfile.NamedTemporaryFile(suffix=f".{kind}") as scratch:
                chart.save(scratch.name, ppi=200)
                files[f"{figure.name}.{kind}"] = Path(scratch.name).read_bytes()
    files[f"{study_name}.csv"] = results.to_csv(index=False).encode()
    page = render(study, tier, results, planned[study_name, tier], charts)
    files["report.html"] = page.encode()
    _write_all(folder, files)
    return folder / "report.html"


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Each file appears whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            scratch = folder / f".{name}.partial"
            scratch.write_bytes(content)
            os.replace(scratch, folder / name)
    except OSError as error:
        raise InputError(f"cannot write the report to {folder}: {error.strerror}") from error
