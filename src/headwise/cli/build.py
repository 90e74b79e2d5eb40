"""`headwise build`: networks from a proof, their certificates, and witnesses against others."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli import build_witness
from headwise.cli.ending import GATE_FAILED
from headwise.cli.options.parse import TrustOption, chosen_task, whole_numbers
from headwise.cli.options.result import JsonOption
from headwise.cli.options.where import LOCAL, OnOption
from headwise.cli.progress import progress_bar, says_it_works
from headwise.core.errors import require
from headwise.core.files import appearing_files, check_can_write_into
from headwise.core.lines import fit

if TYPE_CHECKING:
    from headwise.build import Built

app = typer.Typer(no_args_is_help=True, help="Networks built from a proof, with a certificate.")

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
    trust: TrustOption = None,
    error: Annotated[float | None, typer.Option(help="Sup-norm error to certify.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature of the softmax, 1/β, instead of an error.")
    ] = None,
    heads: Annotated[int | None, typer.Option(help="More heads than features: zero heads.")] = None,
    low: Low = None,
    high: High = None,
    seconds: Seconds = 5.0,
    out: Out = Path("built"),
    as_json: JsonOption = False,
) -> None:
    """One head of dimension 2 a feature: weights, certificate and attention pattern.

    Example: `headwise build retrieval --preset paper --length 64 --error 1e-3 --out built`
    """
    from headwise import build

    check_can_write_into(out, "--out", drawn=True)
    chosen = chosen_task(preset, length, task, trust)
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
    trust: TrustOption = None,
    low: Low = None,
    high: High = None,
    seconds: Seconds = 5.0,
    out: Out = Path("built"),
    as_json: JsonOption = False,
) -> None:
    """One head that holds the whole sequence, and a readout that does the rest.

    Example: `headwise build memorise --preset max-plus-min --length 8 --error 0.05 --out built`
    """
    from headwise import build

    check_can_write_into(out, "--out", drawn=True)
    chosen = chosen_task(preset, length, task, trust)
    built = build.memorise(chosen, error, box=_box(low, high))
    _deliver(built, out, seconds, as_json)


@app.command()
def frontier(
    lengths: Annotated[str, typer.Option(help="Lengths, with commas.")] = "16,32,64",
    out: Out = Path("frontier"),
    as_json: JsonOption = False,
) -> None:
    """Parameters against error: built with h = D, one wide head, and the bound for fewer heads.

    Example: `headwise build frontier --lengths 16,32,64 --out frontier`
    """
    from headwise import build
    from headwise.report.files import figure_files, printed, write_files
    from headwise.report.result_page import write_page

    check_can_write_into(out, "--out", drawn=True)
    with progress_bar("frontier") as on_progress:
        found = build.frontier(whole_numbers(lengths), on_progress=on_progress)
    write_files(out, figure_files("frontier", printed(found.figure()), found.to_pandas()))
    write_page(found, out / "report.html")
    said = f"{found}\nwritten to {out}: report.html, frontier.png, .svg, .pdf, .csv"
    print(found.to_json() if as_json else fit(said))


app.command("witness")(build_witness.witness)


class Draws(StrEnum):
    """How the directions of queries and keys are drawn."""

    aligned = "aligned"
    independent = "independent"
    uniform_angle = "uniform-angle"
    published = "published"


@app.command("random-features")
@says_it_works
def random_features(
    dim: Annotated[int, typer.Option(help="Dimension of a token.")],
    heads: Annotated[int, typer.Option(help="Heads of rank 1; 16,384 take a CPU-minute, 3 GB.")],
    seed: Annotated[int, typer.Option(help="Seed of the directions.")] = 0,
    draw: Annotated[
        Draws, typer.Option(help="Directions; published: with the slip of the authors' script.")
    ] = Draws.aligned,
    out: Annotated[Path | None, typer.Option(help="A folder to write the layer to.")] = None,
    as_json: JsonOption = False,
) -> None:
    """One layer of random hard heads of rank 1, best combined, and its error in closed form.

    Example: `headwise build random-features --dim 8 --heads 16384 --draw published`
    """
    from headwise import build

    if out is not None:
        check_can_write_into(out, "--out")
    layer = build.random_features_layer(dim, heads, seed, draw.value)
    if out is not None:
        layer.net.save_pretrained(out)
    print(json.dumps(layer.to_data()) if as_json else fit(layer))


@app.command()
def trials(
    count: Annotated[int, typer.Option(help="Random tasks to try.")] = 200,
    seconds: Annotated[float, typer.Option(help="Length of each attack.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Which tasks.")] = 0,
    on: OnOption = LOCAL,
    jobs: Annotated[
        int | None, typer.Option(help="How many at once; by default one, on Ray one a core.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build random tasks of every kind and attack each certificate; exit code 1 if one breaks.

    Example: `headwise build trials --count 200 --seconds 2`
    """
    from headwise import build

    with progress_bar("trials") as on_progress:
        found = build.trials(count, seconds, seed, on_progress, on=on, jobs=jobs)
    print(found.to_json() if as_json else fit(found))
    if not found.holds:
        raise typer.Exit(GATE_FAILED)


@app.command()
def assumptions(
    net: Annotated[Path, typer.Option(help="The folder of a saved class-token network.")],
    low: Low = None,
    high: High = None,
    as_json: JsonOption = False,
) -> None:
    """Does a network meet the assumptions that the bound for too few heads is proved under?

    Example: `headwise build assumptions --net built`
    """
    from headwise import build
    from headwise.nets import ClassTokenNet

    found = build.check_network_assumptions(
        ClassTokenNet.from_pretrained(net), _box(low, high) or (0.0, 1.0)
    )
    rows = [{"name": each.name, "holds": each.holds, "why": each.why} for each in found]
    said = "\n".join(map(str, found))
    print(json.dumps(rows, ensure_ascii=False) if as_json else fit(said))


def _box(low: float | None, high: float | None) -> tuple[float, float] | None:
    require((low is None) == (high is None), "give --low and --high together")
    return None if low is None or high is None else (low, high)


def _deliver(built: "Built", out: Path, seconds: float, as_json: bool) -> None:
    """Attack the certificate, write the network with its files, and say what came of it."""
    from headwise.build.built import CERTIFICATE
    from headwise.report.files import figure_files, printed, write_files
    from headwise.report.result_page import write_page

    with progress_bar("attack") as on_progress:
        attack = built.certificate.attack(seconds=seconds, on_progress=on_progress)
    with appearing_files(out, last=CERTIFICATE) as scratch:
        built.save_pretrained(scratch)
        write_files(scratch, figure_files("attention", printed(built.figure()), built.attention()))
        write_page(built, scratch / "report.html")
    if as_json:
        answer = built.to_data() | attack.to_data() | {"out": str(out)}
        print(json.dumps(answer, ensure_ascii=False))
        return
    print(fit(built))
    print(fit(attack))
    print(fit(f"written to {out}: weights, specification, certificate, attention pattern"))
