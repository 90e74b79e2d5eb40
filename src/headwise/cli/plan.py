"""`headwise plan`: which heads and dimensions in which layer?"""

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.ending import OUT_OF_TIME, kept_in
from headwise.cli.options.given import given
from headwise.cli.options.result import JsonOption, PageOption
from headwise.cli.options.where import LOCAL, Device, DeviceOption, GpusOption, JobsOption, OnOption
from headwise.cli.progress import progress_bar
from headwise.core.lines import fit


def plan(
    layers: Annotated[int, typer.Option(help="Attention layers.")],
    width: Annotated[int, typer.Option(help="Width of the model.")],
    length: Annotated[int, typer.Option(help="Tokens in a context.")],
    budget: Annotated[int, typer.Option(help="Attention parameters of all layers, no biases.")],
    text: Annotated[Path | None, typer.Option(help="Measure on this text, as bytes.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Measure on the token numbers in this .npz: a stream, or sequences."),
    ] = None,
    intrinsic_dim: Annotated[
        int | None, typer.Option(help="Features that the target extracts, if known.")
    ] = None,
    multiple: Annotated[int, typer.Option(help="Head dimensions are multiples of this.")] = 4,
    seconds: Annotated[
        float, typer.Option(help="Time for measuring, on cores of usual speed.")
    ] = 600.0,
    seed: Annotated[int, typer.Option(help="Equal seeds, equal plans.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the plan to this JSON file.")] = None,
    report: PageOption = None,
    store: Annotated[
        Path, typer.Option(help="The SQLite file that keeps trials; a stopped plan goes on.")
    ] = Path("headwise.db"),
    jobs: JobsOption = None,
    on: OnOption = LOCAL,
    gpus_per_job: GpusOption = 0.0,
    device: DeviceOption = Device.cpu,
    as_json: JsonOption = False,
) -> None:
    """Share a budget of attention parameters out over layers, heads and dimensions.

    Without data: the theory's default, unchecked. With --text or --data: short trainings of the
    published schedules and of the solver's own, and a comparison with uniform.

    Exit code 0: a plan; 4: time ran out, and the plan is what was known by then.

    Example: `headwise plan --layers 6 --width 384 --length 256 --budget 3538944`
    """
    options = given(locals())
    from headwise.advise.plan import plan as make

    with progress_bar("plan") as on_progress, kept_in(store, "trials"):
        made = make(**options, on_progress=on_progress)
    print(made.to_json() if as_json else fit(made))
    if out is not None and not as_json:
        print(f"wrote {out}")
    if not made.in_time:
        raise typer.Exit(OUT_OF_TIME)
