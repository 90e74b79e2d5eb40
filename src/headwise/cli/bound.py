"""`headwise bound`: what the theory promises and forbids, in words or as JSON."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.options.parse import whole_numbers
from headwise.cli.options.result import JsonOption
from headwise.cli.progress import says_it_works
from headwise.core.files import check_can_write_into
from headwise.core.lines import fit

if TYPE_CHECKING:
    from headwise.theory import Bound

app = typer.Typer(no_args_is_help=True, help="What theory promises and what it forbids.")


class Values(StrEnum):
    """What the heads' value-output matrices may be."""

    general = "general"
    scalar = "scalar"


Heads = Annotated[int, typer.Option(help="Attention heads in the layer.")]
HeadDim = Annotated[int, typer.Option(help="Dimension of a head.")]
IntrinsicDim = Annotated[int, typer.Option(help="Features that the target extracts.")]
SetFraction = Annotated[
    float, typer.Option(help="Share of the positions that each feature looks at.")
]
Dim = Annotated[int, typer.Option(help="Dimension of a token.")]
Rank = Annotated[int, typer.Option(help="Rank of a head's query–key form.")]
ValueMaps = Annotated[
    Values, typer.Option(help="Value-output matrices: any, or multiples of the identity.")
]
HeadsAsked = Annotated[int | None, typer.Option(help="Ask for the least error of this many heads.")]
ErrorAsked = Annotated[
    float | None, typer.Option(help="Ask for the heads that this mean-square error takes.")
]
HighestDegree = Annotated[int, typer.Option(help="Harmonics to count; more sharpen the bound.")]
KernelFile = Annotated[
    Path, typer.Option(help="An .npy file: lags × outputs × inputs of a linear target.")
]


ValueDiameter = Annotated[
    float | None, typer.Option(help="Ask for the output: no two values are further apart.")
]
ScoreBound = Annotated[
    float | None, typer.Option(help="Ask for the Euclidean distance: scores are within ± this.")
]


@app.command("head-count")
def head_count(
    heads: Heads,
    intrinsic_dim: IntrinsicDim,
    length: Annotated[int, typer.Option(help="Tokens in a sequence.")],
    head_dim: HeadDim,
    set_fraction: SetFraction = 0.25,
    readout_layers: Annotated[int, typer.Option(help="Layers of the readout: 2 or 5.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """How fast the parameters of a network with too few heads must grow as its error falls.

    Example: `headwise bound head-count --heads 2 --intrinsic-dim 4 --length 128 --head-dim 8`
    """
    from headwise.theory.head_count import lower_bound_exponent

    found = lower_bound_exponent(
        heads,
        intrinsic_dim,
        length,
        head_dim,
        set_fraction,
        readout_layers=readout_layers,  # type: ignore[arg-type]
    )
    _show(found, as_json)


@app.command("phase-map")
@says_it_works
def phase_map(
    intrinsic_dim: IntrinsicDim,
    head_dim: HeadDim,
    heads: Annotated[str, typer.Option(help="Numbers of heads, with commas.")] = "1,2,3,4,5",
    lengths: Annotated[
        str, typer.Option(help="Sequence lengths, with commas.")
    ] = "8,16,32,64,128,256,512",
    set_fraction: SetFraction = 0.25,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("phase-map"),
    as_json: JsonOption = False,
) -> None:
    """The lower bound's exponent over heads × lengths, as a figure (PNG, SVG) and a table.

    Example: `headwise bound phase-map --intrinsic-dim 4 --head-dim 8 --out phase-map`
    """
    from headwise.report.files import figure_files, printed, write_files
    from headwise.theory import head_count

    check_can_write_into(out, "--out", drawn=True)
    found = head_count.phase_map(
        whole_numbers(heads),
        whole_numbers(lengths),
        intrinsic_dim=intrinsic_dim,
        head_dim=head_dim,
        set_fraction=set_fraction,
    )
    write_files(out, figure_files("phase-map", printed(found.figure()), found.to_pandas()))
    said = f"{found}\nwritten to {out}: phase-map.png, .svg, .pdf, .csv"
    print(found.to_json() if as_json else fit(said))


@app.command("rank")
def rank(
    dim: Dim,
    rank: Rank,
    heads: HeadsAsked = None,
    error: ErrorAsked = None,
    values: ValueMaps = Values.general,
    highest_degree: HighestDegree = 399,
    as_json: JsonOption = False,
) -> None:
    """What heads of low rank cannot do: the least error of --heads, or the heads for --error.

    Example: `headwise bound rank --dim 64 --rank 8 --error 0.1`
    """
    from headwise.theory.rank import low_rank_bound

    found = low_rank_bound(
        dim, rank, heads=heads, error=error, values=values.value, highest_degree=highest_degree
    )
    _show(found, as_json)


@app.command("nearly-full-rank")
def nearly_full_rank(
    dim: Annotated[int, typer.Option(help="Dimension of a token; even.")],
    as_json: JsonOption = False,
) -> None:
    """How many heads one rank below full find the nearer of two points exactly.

    Example: `headwise bound nearly-full-rank --dim 16`
    """
    from headwise.theory.rank import exact_below_full_rank

    _show(exact_below_full_rank(dim), as_json)


@app.command("bands")
def bands(
    dim: Dim,
    rank: Rank,
    heads: Heads,
    values: ValueMaps = Values.general,
    highest_degree: HighestDegree = 799,
    as_json: JsonOption = False,
) -> None:
    """What heads of low rank cannot do at a combination of biased nearest neighbours.

    Example: `headwise bound bands --dim 16 --rank 4 --heads 64`
    """
    from headwise.theory.rank import banded_error_bound

    found = banded_error_bound(dim, rank, heads, values.value, highest_degree=highest_degree)
    _show(found, as_json)


@app.command("extraction")
def extraction(
    kernel: KernelFile,
    heads: Heads,
    head_dim: HeadDim,
    as_json: JsonOption = False,
) -> None:
    """The least error of an early layer that reads a linear target off the past tokens.

    Example: `headwise bound extraction --kernel kernel.npy --heads 4 --head-dim 16`
    """
    from headwise.core.array_files import read_npy
    from headwise.theory.allocation import extraction_bound

    _show(extraction_bound(read_npy(kernel), heads, head_dim), as_json)


@app.command("extraction-splits")
def extraction_splits(
    kernel: KernelFile,
    budget: Annotated[int, typer.Option(help="Heads × dimension of a head.")],
    as_json: JsonOption = False,
) -> None:
    """Few wide heads or many narrow ones at a linear target: what is forbidden, what is reached.

    Example: `headwise bound extraction-splits --kernel kernel.npy --budget 32`
    """
    from headwise.core.array_files import read_npy
    from headwise.theory import allocation

    found = allocation.extraction_splits(read_npy(kernel), budget)
    print(found.to_json() if as_json else fit(found))


@app.command("saturation")
def saturation(
    epsilon: Annotated[
        float,
        typer.Option(help="Half the spread of a row's change of scores, as they enter softmax."),
    ],
    value_diameter: ValueDiameter = None,
    score_bound: ScoreBound = None,
    length: Annotated[int | None, typer.Option(help="Keys in a row, with --score-bound.")] = None,
    as_json: JsonOption = False,
) -> None:
    """How far a head's attention, or its output, can move if its scores change by ± --epsilon.

    Example: `headwise bound saturation --epsilon 0.2 --score-bound 1 --length 1024`
    """
    from headwise.theory.saturation import saturation_bound

    found = saturation_bound(
        epsilon, value_diameter=value_diameter, score_bound=score_bound, length=length
    )
    _show(found, as_json)


@app.command("calculator")
def calculator(
    out: Annotated[Path, typer.Option(help="The .html file to write.")] = Path("calculator.html"),
) -> None:
    """The bound on too few heads as a page with sliders.

    Example: `headwise bound calculator --out calculator.html`
    """
    from headwise.report.pages.calculator import write_calculator

    print(write_calculator(out))


def _show(bound: "Bound", as_json: bool) -> None:
    print(json.dumps(bound.to_data(), ensure_ascii=False, indent=2) if as_json else fit(bound))
