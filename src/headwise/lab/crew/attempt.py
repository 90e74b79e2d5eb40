"""What a process does with a job, wherever it runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch

from headwise.core.errors import InputError
from headwise.core.lazy import named
from headwise.lab.crew.messages import Finished, Job, JobError, Progress
from headwise.training import keep_freed_memory


@dataclass(frozen=True)
class Broken:
    """One attempt at a job ended in an error."""

    job: int
    error: Exception


def settle_in(modules: Sequence[str]) -> None:
    """Make a process ready for jobs: one thread, and the modules that its jobs come from."""
    torch.set_num_threads(1)
    keep_freed_memory()
    for module in modules:  # a user's own kinds register themselves
        import_module(module)


def attempt(
    number: int, job: Job, tell: Callable[[Progress], None], every: float, folder: Path | None
) -> Finished | Broken:
    """Do a job; its progress is told at most once in `every` seconds."""
    begun = told = time.monotonic()

    def report(fraction: float, doing: str) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= every:
            told = now
            tell(Progress(number, fraction, now - begun))

    try:
        result = named(job.work)(*job.arguments, report, folder)
    except InputError as error:
        return Broken(number, error)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise  # nobody is left to report to
    except Exception as error:
        return Broken(number, JobError(f"{type(error).__name__}: {error}".removesuffix(": ")))
    return Finished(number, result, time.monotonic() - begun)
