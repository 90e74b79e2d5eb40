"""`headwise convert`: other checkpoint formats to a folder that transformers opens."""

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.progress import says_it_works

app = typer.Typer(no_args_is_help=True, help="Convert a checkpoint to the Hugging Face layout.")


@app.command()
@says_it_works
def llama2c(
    file: Annotated[Path, typer.Argument(help="A llama2.c checkpoint (.bin).")],
    folder: Annotated[Path, typer.Argument(help="New folder to write.")],
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="tokenizer.bin; by default what follows the weights in FILE, if any."),
    ] = None,
) -> None:
    """A llama2.c checkpoint to the Llama family, with its tokenizer."""
    from headwise.pretrained import convert_llama2c

    convert_llama2c(file, folder, tokenizer)
    typer.echo(f"wrote {folder}")


@app.callback()
def _convert() -> None:
    """Convert a checkpoint to the Hugging Face layout."""
