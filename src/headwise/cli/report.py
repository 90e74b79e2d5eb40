"""`headwise report`: figures and the page, from a store alone."""

from pathlib import Path
from typing import Annotated

import typer

from headwise.core.errors import require


def report(
    store: Annotated[Path, typer.Argument(help="The SQLite file with the results.")],
    study: Annotated[str | None, typer.Option(help="Which study, if there are several.")] = None,
    tier: Annotated[
        str | None, typer.Option(help="Which tier; the one with most finished runs by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("report"),
) -> None:
    """Rebuild a study's report (HTML, PNG, SVG, CSV) from its store."""
    from headwise.lab.store import Store
    from headwise.report import build_report

    with Store(store) as results:
        rows = [
            row for row in results.progress() if study in (None, row[0]) and tier in (None, row[1])
        ]
        require(len(rows) > 0, f"{store} holds no such study; see: headwise study status")
        names = sorted({row[0] for row in rows})
        require(len(names) == 1, f"{store} holds {', '.join(names)}: choose one with --study")
        name, level, _, _ = max(rows, key=lambda row: row[2])
        print(build_report(results, name, level, out))
