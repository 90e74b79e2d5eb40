"""`headwise build witness`: what too few heads confuse, next to what training reached."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headwise.cli.parse import chosen_task, whole_numbers
from headwise.cli.progress import fraction_progress
from headwise.core.errors import require

if TYPE_CHECKING:
    from headwise.nets import ClassTokenNet
    from headwise.tasks import Retrieval


def witness(
    preset: Annotated[str, typer.Option(help="A task: paper, paper-d3 or max-plus-min.")] = "paper",
    length: Annotated[int, typer.Option(help="Tokens in a sequence.")] = 16,
    net: Annotated[
        Path | None, typer.Option(help="A saved class-token network, instead of training some.")
    ] = None,
    heads: Annotated[
        str, typer.Option(help="Numbers of heads to train, with commas.")
    ] = "1,2,3,4,5",
    steps: Annotated[int, typer.Option(help="Training steps.")] = 8_000,
    seeds: Annotated[int, typer.Option(help="Networks to train for each; the best counts.")] = 2,
    reach: Annotated[
        float, typer.Option(help="How far coordinates may be from sampled inputs.")
    ] = 0.3,
    search_steps: Annotated[int, typer.Option(help="Steps of the search.")] = 150,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("witness"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Two inputs that an attention block confuses: an error that no readout can repair.

    Example: `headwise build witness --length 16 --heads 1,2,3,4,5 --out witness`
    """
    from headwise import build
    from headwise.nets import ClassTokenNet

    task = chosen_task(preset, length, None)
    search: dict[str, Any] = {"reach": reach, "steps": search_steps, "seed": seed}
    if net is not None:
        found = build.witness(ClassTokenNet.from_pretrained(net), task, **search)
        print(json.dumps(found.to_data()) if as_json else found)
        return
    require(seeds >= 1, f"seeds is {seeds}; the least is 1")
    counts = whole_numbers(heads)
    trained = {each: _trained(task, each, steps, seeds) for each in counts}
    _witness_figure(task, trained, search, out, as_json)


def _trained(task: "Retrieval", heads: int, steps: int, seeds: int) -> "ClassTokenNet":
    """The best of some networks of the paper's shape."""
    from headwise.nets import ClassTokenNet, ClassTokenShape
    from headwise.training.loop import train
    from headwise.training.training import Training

    shape = ClassTokenShape.standard(token_dim=task.token_dim, heads=heads)
    training = Training(steps=steps, rate=1e-2)
    with fraction_progress(f"training {heads} heads") as on_progress:
        outcomes = train(task, shape, training, range(seeds), on_progress=on_progress)
    best = min(outcomes, key=lambda each: float("inf") if each.error is None else each.error)
    return ClassTokenNet(shape, best.params)


def _witness_figure(
    task: "Retrieval",
    trained: dict[int, "ClassTokenNet"],
    search: dict[str, Any],
    out: Path,
    as_json: bool,
) -> None:
    import pandas as pd

    from headwise import build
    from headwise.build._witness import compare
    from headwise.report.constructions import draw_witness
    from headwise.report.files import figure_files, write_files

    enough = [each for each in trained if each >= task.intrinsic_dim]
    built = {each: build.retrieval(task, 1e-3, heads=each).net for each in enough}
    with fraction_progress("witness") as on_progress:
        groups = {"trained": trained} | ({"built": built} if built else {})
        rows = pd.DataFrame(compare(groups, task, on_progress=on_progress, **search))
    chart = draw_witness(rows, task.length, task.intrinsic_dim)
    write_files(out, figure_files("witness", chart, rows))
    if as_json:
        print(rows.to_json(orient="records"))
        return
    listing = Table("heads", "network", "forced / σ", "rms / σ", "Δ", "δ", "readout's L ≤")
    for (group, heads), here in rows.groupby(["group", "heads"], sort=False):
        forced, rms = here["relative"].iloc[0], here["relative"].iloc[1]
        first: dict[str, Any] = here.iloc[0].to_dict()
        listing.add_row(
            str(heads),
            str(group),
            f"{forced:.2g}",
            f"{rms:.2g}",
            f"{first['target_gap']:.3g}",
            f"{first['representation_gap']:.1e}",
            f"{first['readout_lipschitz']:.3g}",
        )
    Console().print(listing)
    print(f"figure and table: {out}/witness.png, .svg, .csv")
