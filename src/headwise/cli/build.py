"""`headwise build`: networks from a proof, their certificates, and witnesses against others."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headwise.cli import build_witness
from headwise.cli.parse import chosen_task, whole_numbers
from headwise.cli.progress import fraction_progress
from headwise.core.errors import InputError, require

if TYPE_CHECKING:
    from headwise.build import Attack, Built

app = typer.Typer(no_args_is_help=True, help="Networks built from a proof, with a certificate.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Out = Annotated[Path, typer.Option(help="The folder to write to.")]
Preset = Annotated[str, typer.Option(help="A task: paper, paper-d3 or max-plus-min.")]
TaskFile = Annotated[
    Path | None, typer.Option("--task", help="A task's specification (JSON) instead of a preset.")
]
Length = Annotated[int | None, typer.Option(help="Tokens in a sequence.")]
Low = Annotated[float | None, typer.Option(help="Least value of a token's coordinates.")]
High = Annotated[float | None, typer.Option(help="Largest value of a token's coordinates.")]
Seconds = Annotated[float, typer.Option(help="How long to search for the worst input.")]


@app.command()
def retrieval(
    preset: Preset = "paper",
    length: Length = None,
    task: TaskFile = None,
    error: Annotated[float | None, typer.Option(help="Sup-norm error to certify.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature of the softmax, 1/β, instead of an error.")
    ] = None,
    heads: Annotated[int | None, typer.Option(help="More heads than features: zero heads.")] = None,
    low: Low = None,
    high: High = None,
    seconds: Seconds = 5.0,
    out: Out = Path("built"),
    as_json: AsJson = False,
) -> None:
    """One head of dimension 2 a feature: weights, certificate and attention pattern.

    Example: `headwise build retrieval --preset paper --length 64 --error 1e-3 --out built`
    """
    from headwise import build

    chosen = chosen_task(preset, length, task)
    built = build.retrieval(
        chosen, error, temperature=temperature, heads=heads, box=_box(low, high)
    )
    _deliver(built, out, seconds, as_json)


@app.command()
def memorise(
    error: Annotated[float, typer.Option(help="Sup-norm error to certify.")],
    preset: Preset = "max-plus-min",
    length: Length = None,
    task: TaskFile = None,
    low: Low = None,
    high: High = None,
    seconds: Seconds = 5.0,
    out: Out = Path("built"),
    as_json: AsJson = False,
) -> None:
    """One head that holds the whole sequence, and a readout that does the rest.

    Example: `headwise build memorise --preset max-plus-min --length 8 --error 0.05 --out built`
    """
    from headwise import build

    built = build.memorise(chosen_task(preset, length, task), error, box=_box(low, high))
    _deliver(built, out, seconds, as_json)


@app.command()
def frontier(
    lengths: Annotated[str, typer.Option(help="Lengths, with commas.")] = "16,32,64",
    out: Out = Path("frontier"),
    as_json: AsJson = False,
) -> None:
    """Parameters against error: built with h = D, one wide head, and the bound for fewer heads.

    Example: `headwise build frontier --lengths 16,32,64 --out frontier`
    """
    import pandas as pd

    from headwise.build._frontier import TASKS
    from headwise.build._frontier import frontier as rows_of
    from headwise.report.constructions import draw_frontier
    from headwise.report.files import figure_files, write_files

    rows = []
    with fraction_progress("frontier") as on_progress:
        settings = [
            (name, make, each) for name, make in TASKS.items() for each in whole_numbers(lengths)
        ]
        for done, (name, make, each) in enumerate(settings):
            rows += rows_of({name: make(each)})
            on_progress((done + 1) / len(settings))
    table = pd.DataFrame(rows)
    write_files(out, figure_files("frontier", draw_frontier(table), table))
    if as_json:
        print(table.to_json(orient="records"))
        return
    ends = table[table["error"].isin([table["error"].max(), table["error"].min()])]
    listing = Table("task", "T", "curve", "error", "params M", "certified")
    for row in ends.sort_values(["task", "length", "curve", "error"]).to_dict("records"):
        certified = row["certified_error"]
        listing.add_row(
            row["task"],
            str(row["length"]),
            row["curve"],
            f"{row['error']:.1e}",
            f"{row['params']:,.0f}" if row["params"] < 1e9 else f"{row['params']:.1e}",
            f"{certified:.2e}" if certified == certified and certified is not None else "–",
        )
    Console().print(listing)
    print(f"figure and table: {out}/frontier.png, .svg, .csv")


app.command("witness")(build_witness.witness)


@app.command()
def trials(
    count: Annotated[int, typer.Option(help="Random tasks to try.")] = 200,
    seconds: Annotated[float, typer.Option(help="Length of each attack.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Which tasks.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Build random tasks of every kind and attack each certificate; exit code 1 if one breaks.

    Example: `headwise build trials --count 200 --seconds 2`
    """
    from headwise.build.certify.trials import trials as draw

    require(count >= 1, f"count is {count}; the least is 1")
    rows: list[dict[str, Any]] = []
    with fraction_progress("trials") as on_progress:
        for index, trial in enumerate(draw(count, seed)):
            built, attack = trial.run(rounds=None, seconds=seconds)
            certified = built.certificate.error
            rows.append(
                {
                    "trial": index,
                    "features": trial.kind,
                    "outer": type(trial.task.outer).__name__,
                    "intrinsic_dim": trial.task.intrinsic_dim,
                    "token_dim": trial.task.token_dim,
                    "length": trial.task.length,
                    "subsets": bool(trial.task.subsets),
                    "params": built.params()["total"],
                    "asked": trial.error,
                    "certified": certified,
                    "worst_found": attack.worst,
                    "holds": certified <= trial.error and attack.holds,
                }
            )
            on_progress((index + 1) / count)
    broken = [row for row in rows if not row["holds"]]
    if as_json:
        print(json.dumps(rows))
    else:
        closest = max(row["worst_found"] / row["certified"] for row in rows)
        print(
            f"{count - len(broken)} of {count} certificates hold; the closest attack reached "
            f"{100 * closest:.1f} % of the certified error"
        )
        for row in broken:
            print(f"broken: {row}")
    if broken:
        raise typer.Exit(1)


def _box(low: float | None, high: float | None) -> tuple[float, float] | None:
    require((low is None) == (high is None), "give --low and --high together")
    return None if low is None or high is None else (low, high)


def _deliver(built: "Built", out: Path, seconds: float, as_json: bool) -> None:
    """Write the network and its papers, attack the certificate, and say what came of it."""
    from headwise.build.pattern import attention_rows
    from headwise.report.constructions import draw_attention
    from headwise.report.files import figure_files, write_files

    with fraction_progress("attack") as on_progress:
        attack = built.certificate.attack(seconds=seconds, on_progress=on_progress)
    try:
        built.save_pretrained(out)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}") from error
    rows = attention_rows(built)
    dims, length = built.task.intrinsic_dim, built.task.length
    title = f"Which token each head picks (D = {dims}, T = {length})"
    write_files(out, figure_files("attention", draw_attention(rows, title), rows))
    _say(built, attack, out, as_json)


def _say(built: "Built", attack: "Attack", out: Path, as_json: bool) -> None:
    counts = built.params()
    if as_json:
        answer = built.certificate.to_data() | {
            "worst_found": attack.worst,
            "inputs_tried": attack.tried,
            "params": counts,
            "out": str(out),
        }
        print(json.dumps(answer, ensure_ascii=False))
        return
    print(built.certificate)
    print(attack)
    layer = built.net.shape.layers[0]
    print(
        f"network: {layer.heads} heads of dimension {layer.v_dim}, {counts['total']:,} parameters "
        f"({counts['mlp']:,} in encoder and readout), double precision"
    )
    print(f"written to {out}: weights, specification, certificate, attention pattern")
