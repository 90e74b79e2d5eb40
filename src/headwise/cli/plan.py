"""`headwise plan`: which heads and dimensions in which layer?"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headwise.cli.parse import worker_count
from headwise.cli.progress import described_progress
from headwise.core.errors import InputError, require

if TYPE_CHECKING:
    from headwise.allocation.plan_file import AllocationPlan


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
    store: Annotated[
        Path, typer.Option(help="The SQLite file that keeps trials; a stopped plan goes on.")
    ] = Path("headwise.db"),
    jobs: Annotated[
        int | None, typer.Option(help="Worker processes; as many as cores by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON only.")] = False,
) -> None:
    """Share a budget of attention parameters out over layers, heads and dimensions.

    Without data: the theory's default, unchecked. With --text or --data: short trainings of the
    published schedules and of the solver's own, and a comparison with uniform.

    Example: `headwise plan --layers 6 --width 384 --length 256 --budget 3538944`
    """
    from headwise.advise.plan.default import default_plan
    from headwise.allocation.plan_file import write_allocation
    from headwise.core.spec import to_data

    require(text is None or data is None, "give --text or --data, not both")
    require(seed >= 0, "a seed is a whole number, not negative")
    require(
        out is None or out.parent.is_dir(),
        f"there is no folder {out.parent if out else ''} for --out",
    )
    if text is None and data is None:
        made = default_plan(
            layers=layers,
            width=width,
            length=length,
            budget=budget,
            intrinsic_dim=intrinsic_dim,
            multiple=multiple,
        )
    else:
        from headwise.advise.plan.measured import Request, measured_plan

        request = Request(
            layers=layers,
            width=width,
            length=length,
            budget=budget,
            intrinsic_dim=intrinsic_dim,
            multiple=multiple,
            seconds=seconds,
            seed=seed,
            workers=worker_count(jobs),
        )
        with described_progress() as on_progress:
            made = _stoppable(
                lambda: measured_plan(request, _task(text, data), store, on_progress), store
            )
    if out is not None:
        write_allocation(made, out)
    print(json.dumps(to_data(made), ensure_ascii=False)) if as_json else _show(made, out)


def _task(text: Path | None, data: Path | None) -> Callable[[int], Any]:
    from headwise.tasks.language import Language
    from headwise.tasks.token_arrays import TokenArray

    if text is not None:
        return lambda length: Language.from_file(text, length)
    assert data is not None
    return lambda length: TokenArray.from_file(data, length)


def _stoppable(make: "Callable[[], AllocationPlan]", store: Path) -> "AllocationPlan":
    from headwise.lab.crew import WorkerDied

    try:
        return make()
    except KeyboardInterrupt:
        Console(stderr=True).print(
            f"Stopped. Trials are kept in {store}; the same command goes on."
        )
        raise typer.Exit(130) from None
    except WorkerDied as error:
        raise InputError(f"{error} Finished trials are kept in {store}.") from error


def _show(made: "AllocationPlan", out: Path | None) -> None:
    console = Console()
    listing = Table("layer", "heads", "qk_dim", "v_dim", "parameters", "share", box=None)
    from headwise.theory.allocation import parameters

    for index, layer in enumerate(made.layers):
        own = parameters(made.width, layer.heads, layer.qk_dim, layer.v_dim)
        sizes = (layer.heads, layer.qk_dim, layer.v_dim)
        listing.add_row(str(index), *map(str, sizes), f"{own:,}", f"{own / made.parameters:.1%}")
    console.print(f"[bold]{made.schedule}[/bold]", highlight=False)
    console.print(listing)
    console.print(f"{made.parameters:,} of {made.budget:,} attention parameters", highlight=False)
    if made.against_uniform is not None:
        console.print(f"expected loss: {made.against_uniform}", highlight=False)
    if made.candidates:
        _show_candidates(console, made)
    for reason in made.reasons:
        console.print(f"- {reason}", highlight=False)
    console.print(f"checked: {made.checked or 'not at all'}", highlight=False)
    if out is not None:
        console.print(f"wrote {out}", highlight=False)


def _show_candidates(console: Console, made: "AllocationPlan") -> None:
    listing = Table("candidate", "loss − uniform's", "95 % interval", "seeds", box=None)
    for row in made.candidates:
        between = "" if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}"
        style = "bold" if row["candidate"] == made.schedule else ""
        listing.add_row(
            row["candidate"],
            f"{row['against_uniform']:+.4f}",
            between,
            str(row["seeds"]),
            style=style,
        )
    console.print(listing)
