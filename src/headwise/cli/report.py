"""`headwise report` and `headwise evidence`: pages from a store, or from shipped tables, alone."""

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.ending import GATE_FAILED, console, say_failed
from headwise.cli.options.parse import TrustOption
from headwise.cli.options.result import JsonOption
from headwise.cli.options.where import JobsOption
from headwise.cli.progress import progress_bar, says_it_works
from headwise.core.lines import fit

evidence = typer.Typer(
    no_args_is_help=True, help="What the studies found: tables, pages, their check."
)

FolderOption = Annotated[Path, typer.Option(help="The folder with the tables and index.html.")]
TierOption = Annotated[
    str | None, typer.Option(help="Which tier; the one with most finished runs by default.")
]
StudyOption = Annotated[str | None, typer.Option(help="Which study, if there are several.")]
WholeTierOption = Annotated[str, typer.Option(help="Which tier; it must have been run whole.")]
OutOption = Annotated[Path | None, typer.Option(help="The folder to write to; report/ by default.")]
DocsOption = Annotated[Path | None, typer.Option(help="The same as a Markdown page.")]
FOLDER, DOCS = Path("evidence"), Path("docs/evidence.md")


@says_it_works
def report(
    store: Annotated[
        Path,
        typer.Argument(
            help="The SQLite file with the results; with --all, a folder with such files."
        ),
    ],
    study: StudyOption = None,
    tier: TierOption = None,
    out: OutOption = None,
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


@evidence.command()
@says_it_works
def add(
    store: Annotated[Path, typer.Argument(help="The SQLite file with the results.")],
    study: StudyOption = None,
    tier: WholeTierOption = "standard",
    folder: FolderOption = FOLDER,
) -> None:
    """Put a study's finished tier into the folder of evidence.

    Example: `headwise evidence add head-count.db`
    """
    from headwise.report.evidence import add_evidence

    print(add_evidence(store, study, tier, folder))


@evidence.command()
@says_it_works
def compare(
    store: Annotated[Path, typer.Argument(help="The SQLite file with a run of your own.")],
    study: StudyOption = None,
    tier: WholeTierOption = "standard",
    folder: FolderOption = FOLDER,
    as_json: JsonOption = False,
) -> None:
    """What a run of your own says of each claim, beside what the shipped table says.

    Exit code 1: a verdict is the opposite of the shipped one.

    Example: `headwise evidence compare head-count.db`
    """
    from headwise.report.evidence import compare_evidence

    found = compare_evidence(store, study, tier, folder)
    print(found.to_json() if as_json else fit(found))
    if not found.agrees:
        raise typer.Exit(GATE_FAILED)


@evidence.command()
def rerun(
    name: Annotated[str, typer.Argument(help="The study, as in: headwise study list")],
    minutes: Annotated[float, typer.Option(help="CPU-minutes of runs to do again.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Which runs are drawn.")] = 0,
    data: Annotated[
        str | None, typer.Option(help="What the study was run on, where it has no data itself.")
    ] = None,
    jobs: JobsOption = None,
    folder: FolderOption = FOLDER,
    as_json: JsonOption = False,
) -> None:
    """Do some runs of a shipped table again, drawn at random: are its numbers what comes out?

    Exit code 1: on the same kind of processor with the same versions a number is another one.

    Example: `headwise evidence rerun head-count --minutes 1`
    """
    from headwise.report.evidence import rerun_evidence

    with progress_bar("rerun", console(stderr=True)) as on_progress:
        found = rerun_evidence(name, minutes, seed, folder, jobs, data, on_progress)
    print(found.to_json() if as_json else fit(found))
    if not found.agrees:
        raise typer.Exit(GATE_FAILED)


@evidence.command()
@says_it_works
def page(folder: FolderOption = FOLDER, docs: DocsOption = DOCS, jobs: JobsOption = None) -> None:
    """Make the pages from the tables."""
    from headwise.report.evidence import write_evidence

    print(write_evidence(folder, docs, jobs))


@evidence.command()
@says_it_works
def check(folder: FolderOption = FOLDER, docs: DocsOption = DOCS, jobs: JobsOption = None) -> None:
    """Recompute every claim, figure and sentence from the tables, without training.

    Exit code 0: pages, tables and studies agree; 1: they do not, and each disagreement is printed.
    """
    from headwise.report.evidence import check_evidence

    wrong = check_evidence(folder, docs, jobs)
    for each in wrong:
        say_failed(each)
    if wrong:
        raise typer.Exit(GATE_FAILED)
    print("Pages, tables and studies agree.")
