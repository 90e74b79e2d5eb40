"""`headwise inspect`: what each head of a model needs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options.where import Device, DeviceOption


def inspect(
    model: Annotated[str, typer.Argument(help="Hub id or folder.")],
    text: Annotated[
        Path | None, typer.Option(help="UTF-8 calibration text (ViT: a folder of images).")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Calibration tokens.")] = 20_000,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens of the longest inputs; default: 2048 (encoders: 512) or less."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(help="How embeddings are read: mean, cls, last; default: as the model says."),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="Gigabytes that measuring may take; default: half of what is free."),
    ] = None,
    cache: Annotated[
        bool, typer.Option(help="Keep measurements on disk, and use those that are there.")
    ] = True,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also remove each head and measure the loss.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write a page to this .html file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of label sampling.")] = 0,
    device: DeviceOption = Device.cpu,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """See what each head of a model needs: ranks, saturation, importance, redundancy."""
    from headwise.cli.progress import progress_bar
    from headwise.pretrained import inspect as run

    with progress_bar("opening the model") as on_progress:
        inspection = run(
            model,
            text=text,
            tokens=tokens,
            length=length,
            pool=pool,
            memory=memory,
            cache=cache,
            exact=exact,
            report=report,
            seed=seed,
            device=device.value,
            on_progress=on_progress,
        )
    print(json.dumps(inspection.to_data()) if as_json else inspection)
