"""`headwise inspect`: what each head of a model needs."""

import json
from typing import Annotated

import typer

from headwise.cli.options import pretrained
from headwise.cli.options.given import given
from headwise.cli.options.result import JsonOption, PageOption
from headwise.cli.options.where import Device, DeviceOption
from headwise.core.lines import fit


def inspect(
    model: pretrained.Model,
    text: pretrained.Text = None,
    tokens: pretrained.Tokens = 20_000,
    length: pretrained.Length = None,
    pool: pretrained.Pool = None,
    memory: pretrained.Memory = None,
    cache: pretrained.Cache = True,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also remove each head and measure the loss.")
    ] = False,
    report: PageOption = None,
    seed: pretrained.Seed = 0,
    device: DeviceOption = Device.cpu,
    as_json: JsonOption = False,
) -> None:
    """See what each head of a model needs: ranks, saturation, importance, redundancy."""
    options = given(locals())
    from headwise.cli.progress import progress_bar
    from headwise.pretrained import inspect as run

    with progress_bar("opening the model") as on_progress:
        inspection = run(**options, on_progress=on_progress)
    print(json.dumps(inspection.to_data()) if as_json else fit(inspection))
