"""Options that say where work is done, and on what; the same in every command that has them."""

from enum import StrEnum
from typing import Annotated

import typer


class Device(StrEnum):
    """What torch computes on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


OnOption = Annotated[
    str,
    typer.Option(
        metavar="PLACE",
        help="Where: local, ray (started here), or ray: and a cluster's address, which is auto, "
        "ray://HOST:PORT or HOST:PORT.",
    ),
]
JobsOption = Annotated[
    int | None, typer.Option(help="How many at once; by default as many as cores.")
]
GpusOption = Annotated[float, typer.Option(help="Share of a GPU that a job on Ray gets.")]
DeviceOption = Annotated[
    Device, typer.Option(metavar="DEVICE", help="What torch computes on: auto, cpu, cuda or mps.")
]
LOCAL = "local"
