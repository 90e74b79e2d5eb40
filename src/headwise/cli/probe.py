"""`headwise probe`: how many heads does this task need? `headwise probe-eval`: how often right?"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.ending import OUT_OF_TIME, REFUSED
from headwise.cli.options.given import given
from headwise.cli.options.result import JsonOption
from headwise.cli.options.where import LOCAL, Device, DeviceOption, GpusOption, OnOption
from headwise.cli.progress import progress_bar
from headwise.core.lines import fit

JobsOption = Annotated[int | None, typer.Option(help="Threads; as many as cores by default.")]


class TargetKind(StrEnum):
    """What the targets are."""

    regression = "regression"
    classification = "classification"


StateOption = Annotated[
    Path | None, typer.Option(help="Keep finished training in this file and go on from it.")
]


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
    positions: Annotated[
        bool | None,
        typer.Option(
            "--positions/--no-positions",
            help="Whether the order of the tokens matters; found out unless given.",
        ),
    ] = None,
    max_heads: Annotated[int, typer.Option(help="Try up to so many heads.")] = 12,
    seconds: Annotated[float, typer.Option(help="Stop after this time.")] = 120.0,
    heads_only: Annotated[
        bool, typer.Option("--heads-only", help="How many, not how wide or how deep; faster.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Equal seeds, equal findings.")] = 0,
    state: StateOption = None,
    figure: Annotated[
        Path | None, typer.Option(help="Write the figure: .png, .svg, .pdf or .html.")
    ] = None,
    jobs: JobsOption = None,
    device: DeviceOption = Device.cpu,
    as_json: JsonOption = False,
) -> None:
    """How many attention heads the task behind these data needs.

    Exit code 0: an answer; 3: none that the evidence supports; 4: none within the time; 2:
    unusable input.

    Example: `headwise probe data.npz --inputs X --targets y`
    """
    options = given(locals())
    from headwise.advise.probe import probe as find

    files = options.pop("data")
    with progress_bar("probe") as on_progress:
        finding = find(*files, **options, on_progress=on_progress)
    print(finding.to_json() if as_json else fit(finding))
    if not finding.conclusive:
        raise typer.Exit(OUT_OF_TIME if finding.seconds >= seconds else REFUSED)


def probe_eval(
    seed: Annotated[int, typer.Option(help="Draws the tasks; take one nobody has used.")],
    tasks: Annotated[int, typer.Option(help="How many tasks.")] = 20,
    zoo: Annotated[bool, typer.Option("--zoo", help="Tasks of all kinds, not retrieval.")] = False,
    first: Annotated[int, typer.Option(help="The number of the first task.")] = 0,
    samples: Annotated[
        int, typer.Option(help="Samples a task where only data are given.")
    ] = 20_000,
    data: Annotated[bool, typer.Option(help="Try the probe on data alone.")] = True,
    function: Annotated[bool, typer.Option(help="Try the probe on the function itself.")] = True,
    seconds: Annotated[float, typer.Option(help="The time of an attempt, at most.")] = 3600.0,
    jobs: Annotated[
        int | None,
        typer.Option(help="Threads, with --zoo processes; as many as cores by default."),
    ] = None,
    on: OnOption = LOCAL,
    gpus_per_job: GpusOption = 0.0,
    device: DeviceOption = Device.cpu,
    out: Annotated[
        Path | None,
        typer.Option(help="Add attempts to this .jsonl file (--zoo), and do not repeat them."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Write the reliability diagram (--zoo): .png, .svg, .pdf or .html."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try the probe on fresh random tasks, and print how often it is right and whether it knows.

    Retrieval: D 1 to 6, token_dim 2 to 8, length 16 to 64, affine and bowl features, five outer
    maps, Gaussian and uniform inputs, noise up to 1 % of the target's deviation. With --zoo:
    averages, counts, mixtures, orders, pairs, labels, symbols, images, noise and more, the right
    answers known by construction.

    Example: `headwise probe-eval --zoo --seed 2024 --tasks 300 --out attempts.jsonl`
    """
    options = given(locals())
    from headwise.advise.probe import probe_eval as evaluate

    found = evaluate(**options, on_progress=lambda fraction, attempt: typer.echo(attempt, err=True))
    print(found.to_json() if as_json else fit(found))
