"""The seam: jobs in, messages out, whoever does the work."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from headwise.core.device import computing_on
from headwise.core.lazy import named
from headwise.core.progress import quiet
from headwise.core.workers import worker_count
from headwise.lab.crew import local, on_ray
from headwise.lab.crew.cargo import Cargo
from headwise.lab.crew.messages import Failed, Finished, Job, Message
from headwise.lab.crew.place import LOCAL, Place
from headwise.lab.crew.queue import TRIES, JobQueue


def run_jobs(
    jobs: Sequence[Job],
    place: Place = Place(),  # noqa: B008  (a value)
    *,
    cargo: Cargo = Cargo(),  # noqa: B008  (a value)
    unfinished: Path | None = None,
    tries: int = TRIES,
) -> Generator[Message]:
    """Work through the jobs, reporting as they go; closing the iterator stops the work.

    `cargo` is what the jobs need beside headwise. In the folder `unfinished` long jobs leave
    checkpoints. A job whose process dies or whose code raises an error is tried `tries` times
    before it is `Failed`; one that raises `InputError` once.
    """
    if place.on == LOCAL:
        queue = JobQueue(jobs, local.PACK_SECONDS, tries)
        workers = worker_count(place.jobs)
        return local.run_here(jobs, queue, workers, cargo.modules, unfinished, place.device)
    queue = JobQueue(jobs, on_ray.PACK_SECONDS, tries)
    return on_ray.run_there(jobs, queue, place, cargo, unfinished)


def capacity(place: Place) -> int:
    """How many jobs run at once there."""
    return worker_count(place.jobs) if place.on == LOCAL else on_ray.slots(place)


def results_of(jobs: Sequence[Job], place: Place) -> Iterator[tuple[int, Any]]:
    """(number, result) of jobs that are nobody's runs, as they come; a failure is raised.

    One at a time on this machine, they are done in this process.
    """
    if place.on == LOCAL and place.jobs == 1:
        yield from _one_by_one(jobs, place.device)
        return
    with closing(run_jobs(jobs, place)) as messages:
        for message in messages:
            if isinstance(message, Failed):
                raise message.error
            if isinstance(message, Finished):
                yield message.job, message.result


def _one_by_one(jobs: Sequence[Job], device: str) -> Iterator[tuple[int, Any]]:
    """With one thread, as a worker has: the same sums in the same order."""
    threads = torch.get_num_threads()
    for number, job in enumerate(jobs):
        torch.set_num_threads(1)
        try:
            with computing_on(device):
                result = named(job.work)(*job.arguments, quiet, None)
        finally:
            torch.set_num_threads(threads)
        yield number, result
