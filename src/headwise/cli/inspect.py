"""`headwise inspect`: what each head of a model needs."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwise.core.errors import require


def inspect(
    model: Annotated[str, typer.Argument(help="Hub id or folder.")],
    text: Annotated[
        Path | None, typer.Option(help="UTF-8 calibration text (ViT: a folder of images).")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Calibration tokens.")] = 20_000,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also remove each head and measure the loss.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write a page to this .html file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of label sampling.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """See what each head of a model needs: ranks, saturation, importance, redundancy."""
    from headwise.cli.model_progress import progress_bar
    from headwise.pretrained import inspect_model, load_model, load_tokenizer
    from headwise.pretrained.text.material import describe, material_for
    from headwise.report.inspection_page import write_page

    require(
        report is None or report.suffix == ".html",
        f"--report names a page to write, such as report.html; {report} does not end in .html",
    )
    require(
        report is None or report.absolute().parent.is_dir(),
        f"{report} cannot be written: its folder does not exist",
    )
    console = Console(stderr=True)
    original = load_model(model)
    tokenizer = None if original.config.model_type == "vit" else load_tokenizer(model)
    material = material_for(original, tokenizer, text, None, tokens, seed)
    console.print(describe(material), style="dim")
    with progress_bar(console) as progress:
        inspection = inspect_model(original, material, exact=exact, seed=seed, progress=progress)
    if report is not None:
        write_page(inspection, report, f"The attention heads of {model}")
    if as_json:
        print(json.dumps(inspection.to_data()))
        return
    shown = {"layer": "layer", "head": "head", "size_at_1pct": "1 %", "size_at_5pct": "5 %"}
    shown |= {"size_at_10pct": "10 %", "rank_by_weights": "rank (weights)"}
    shown |= {"rank_by_activations": "rank (activations)", "entropy": "entropy"}
    shown |= {"importance": f"importance, {inspection.unit}", "similarity": "similarity"}
    if exact:
        shown["importance_measured"] = "measured"
    table = Table(*shown.values(), title="query–key size needed at an output change of …")
    for row in inspection.heads.to_dict("records"):
        table.add_row(*(f"{row[name]:.3g}" for name in shown))
    console.print(table)
    for sentence in inspection.findings:
        console.print(f"• {sentence}", markup=False)
