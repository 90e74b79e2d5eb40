"""`headwise report`: figures and the page, from a store alone."""

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options.parse import TrustOption


def report(
    store: Annotated[
        Path,
        typer.Argument(
            help="The SQLite file with the results; with --all, a folder with such files."
        ),
    ],
    study: Annotated[str | None, typer.Option(help="Which study, if there are several.")] = None,
    tier: Annotated[
        str | None, typer.Option(help="Which tier; the one with most finished runs by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder to write to; report/ by default.")
    ] = None,
    trust: TrustOption = None,
    all: Annotated[
        bool, typer.Option("--all", help="An index of every study in a folder's stores.")
    ] = False,
) -> None:
    """Rebuild a study's report (HTML, PNG, SVG, PDF, CSV) from its store.

    Example: `headwise report headwise.db --study head-count --out report`
    """
    from headwise.report import report

    print(report(store, study, tier, out, trust or (), all))
