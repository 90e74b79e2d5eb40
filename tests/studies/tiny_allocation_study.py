"""The allocation study with decoders that train in a second."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headwise.lab.run import Run
from headwise.studies.allocation.schedules import ALLOCATION, SIZES
from headwise.tasks import Language

SIZE = replace(
    SIZES["quick"],
    layers=2,
    width=16,
    length=16,
    training=replace(SIZES["quick"].training, steps=20, batch=4, validation=16),
)


def parts_of_files(tier: str, texts: Sequence[Path], plans: Sequence[Path]) -> dict[str, list[Run]]:
    tasks = [Language.from_file(path, SIZE.length) for path in texts]
    return {
        name: [run for task in tasks for run in SIZE.runs(task, SIZE.schedules()[name])]
        for name in ("uniform", "early-heavy")
    }


TINY = replace(ALLOCATION, parts_of_files=parts_of_files)
