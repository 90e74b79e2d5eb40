"""`headwise report`: figures and the page, from a store alone."""

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.parse import TrustOption


def report(
    store: Annotated[Path, typer.Argument(help="The SQLite file with the results.")],
    study: Annotated[str | None, typer.Option(help="Which study, if there are several.")] = None,
    tier: Annotated[
        str | None, typer.Option(help="Which tier; the one with most finished runs by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("report"),
    trust: TrustOption = None,
) -> None:
    """Rebuild a study's report (HTML, PNG, SVG, CSV) from its store."""
    from headwise.report import report

    print(report(store, study, tier, out, trust or ()))
