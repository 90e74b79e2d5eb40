"""`headwise probe`: how many heads does this task need? `headwise probe-eval`: how often right?"""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwise.cli.progress import described_progress
from headwise.core.errors import require

if TYPE_CHECKING:
    from headwise.advise.probe.finding import Finding

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
JobsOption = Annotated[int | None, typer.Option(help="Threads; as many as cores by default.")]
REFUSED = 3  # exit code: the data are readable, the evidence supports no answer


class TargetKind(StrEnum):
    """What the targets are."""

    regression = "regression"
    classification = "classification"


def probe(
    data: Annotated[
        list[Path],
        typer.Argument(help="One .npz, .safetensors, .parquet or .csv file, or two .npy files."),
    ],
    inputs: Annotated[
        str | None, typer.Option(help="The array of sequences, or the columns of a token.")
    ] = None,
    targets: Annotated[str | None, typer.Option(help="The array or column of targets.")] = None,
    mask: Annotated[str | None, typer.Option(help="The array that marks real tokens.")] = None,
    sequence: Annotated[
        str | None, typer.Option(help="The column that names the sequence (CSV, Parquet).")
    ] = None,
    kind: Annotated[TargetKind | None, typer.Option(help="Found out unless given.")] = None,
    max_heads: Annotated[int, typer.Option(help="Try up to so many heads.")] = 12,
    seconds: Annotated[float, typer.Option(help="Stop after this time.")] = 120.0,
    seed: Annotated[int, typer.Option(help="Equal seeds, equal findings.")] = 0,
    state: Annotated[
        Path | None, typer.Option(help="Keep finished training in this file and go on from it.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Write the figure: .png, .svg or .html.")
    ] = None,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """How many attention heads the task behind these data needs.

    Exit code 0: an answer; 3: none that the evidence supports; 2: unusable input.

    Example: `headwise probe data.npz --inputs X --targets y`
    """
    from headwise.advise.probe.ask import probe as find
    from headwise.advise.probe.data.readers import read

    require(
        figure is None or figure.suffix in (".png", ".svg", ".html"),
        "a figure is a .png, .svg or .html file",
    )
    found_data = read(data, inputs, targets, mask, sequence)
    with described_progress() as on_progress:
        finding = find(
            found_data.inputs,
            found_data.targets,
            mask=found_data.mask,
            kind=kind.value if kind else None,
            max_heads=max_heads,
            seconds=seconds,
            seed=seed,
            state=state,
            jobs=jobs,
            on_progress=on_progress,
        )
    if figure is not None:
        finding.figure(figure)
    print(finding.to_json()) if as_json else _show(finding)
    if not finding.conclusive:
        raise typer.Exit(REFUSED)


def probe_eval(
    seed: Annotated[int, typer.Option(help="Draws the tasks; take one nobody has used.")],
    tasks: Annotated[int, typer.Option(help="How many tasks.")] = 20,
    samples: Annotated[
        int, typer.Option(help="Samples a task where only data are given.")
    ] = 20_000,
    data: Annotated[bool, typer.Option(help="Try the probe on data alone.")] = True,
    function: Annotated[bool, typer.Option(help="Try the probe on the function itself.")] = True,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try the probe on fresh random retrieval tasks, and print how often it is right.

    D 1 to 6, token_dim 2 to 8, length 16 to 64, affine and bowl features, five outer maps,
    Gaussian and uniform inputs, noise up to 1 % of the target's deviation.

    Example: `headwise probe-eval --seed 2024 --tasks 40`
    """
    from headwise.advise.probe.evaluate import attempts, rows, table

    require(tasks >= 1, f"tasks is {tasks}; at least one is needed")
    console, found = Console(stderr=True), []
    for attempt in attempts(seed, tasks, 0, data, function, samples, jobs=jobs):
        found.append(attempt)
        answer, mark = attempt.finding.heads, "✓" if attempt.off == 0 else "✗"
        console.print(
            f"{mark} {attempt.given}: {answer or 'no answer'} "
            f"(confidence {attempt.finding.confidence:.2f}, {attempt.seconds:.0f} s)  "
            f"{attempt.trial}",
            highlight=False,
            soft_wrap=True,
        )
    summary = table(found)
    if as_json:
        records = {"summary": summary.to_dict("records"), "rows": rows(found).to_dict("records")}
        print(json.dumps(records, default=str))
        return
    listing = Table(f"{tasks} tasks of seed {seed}", *summary["given"])
    for name in summary.columns.drop("given"):
        listing.add_row(name, *map(str, summary[name]))
    Console().print(listing)


def _show(finding: "Finding") -> None:
    console = Console()
    console.print(f"[bold]{finding.sentence}[/bold]", highlight=False)
    for note in finding.notes:
        console.print(note, highlight=False)
    errors = finding.errors()
    if len(errors):
        listing = Table("heads", "held-out error", box=None)
        for heads, error in errors.items():
            style = "bold" if heads == finding.heads else ""
            listing.add_row(str(heads), f"{error:.1e}", style=style)
        console.print(listing)
    if finding.settled_by:
        console.print(f"What would settle it: {finding.settled_by}.")
