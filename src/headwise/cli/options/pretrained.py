"""Options of the commands that open a pretrained model and measure it."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="Hub id or folder.")]
Text = Annotated[
    Path | None,
    typer.Option(help="UTF-8 calibration text (ViT: a folder of images; Whisper: of .wav)."),
]
Tokens = Annotated[int, typer.Option(help="Calibration tokens.")]
Length = Annotated[
    int | None,
    typer.Option(help="Tokens of the longest inputs; default: 2048 (encoders: 512) or less."),
]
Pool = Annotated[
    str | None,
    typer.Option(help="How embeddings are read: mean, cls, last; default: as the model says."),
]
Memory = Annotated[
    float | None,
    typer.Option(help="Gigabytes that measuring may take; default: half of what is free."),
]
Cache = Annotated[
    bool, typer.Option(help="Keep measurements on disk, and use those that are there.")
]
Seed = Annotated[int, typer.Option(help="Seed of label sampling.")]
