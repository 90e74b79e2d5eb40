"""Options that say where a result goes; the same in every command that has them."""

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
PageOption = Annotated[Path | None, typer.Option(help="Write a page to this .html file.")]
