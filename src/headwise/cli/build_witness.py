"""`headwise build witness`: what too few heads confuse, next to what training reached."""

import json
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options.parse import chosen_task, whole_numbers
from headwise.cli.options.result import JsonOption
from headwise.cli.options.where import Device, DeviceOption
from headwise.cli.progress import progress_bar
from headwise.core.files import check_can_write_into
from headwise.core.lines import fit


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
    device: DeviceOption = Device.cpu,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("witness"),
    as_json: JsonOption = False,
) -> None:
    """Two inputs that an attention block confuses: an error that no flatter readout can repair.

    Example: `headwise build witness --length 16 --heads 1,2,3,4,5 --out witness`
    """
    from headwise.report.result_page import write_page

    check_can_write_into(out, "--out", drawn=True)
    task = chosen_task(preset, length, None)
    if net is not None:
        from headwise import build
        from headwise.nets import ClassTokenNet

        saved = ClassTokenNet.from_pretrained(net)
        with progress_bar("witness") as on_progress:
            found = build.witness(
                saved, task, reach=reach, steps=search_steps, seed=seed, on_progress=on_progress
            )
        write_page(found, out / "report.html")
        print(
            json.dumps(found.to_data())
            if as_json
            else fit(f"{found}\nwritten to {out}: report.html")
        )
        return

    from headwise.report.files import figure_files, printed, write_files
    from headwise.studies.head_count.witnesses import trained_witnesses

    with progress_bar("witness") as on_progress:
        compared = trained_witnesses(
            task,
            whole_numbers(heads),
            steps=steps,
            seeds=seeds,
            reach=reach,
            search_steps=search_steps,
            seed=seed,
            device=device.value,
            on_progress=on_progress,
        )
    write_files(out, figure_files("witness", printed(compared.figure()), compared.to_pandas()))
    write_page(compared, out / "report.html")
    said = f"{compared}\nwritten to {out}: report.html, witness.png, .svg, .pdf, .csv"
    print(compared.to_json() if as_json else fit(said))
