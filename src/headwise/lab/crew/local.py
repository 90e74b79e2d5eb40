"""Worker processes: one torch thread each, jobs in, records out.

Each worker has a pipe of its own. A worker whose parent is gone is ended by the system, or finds
the pipe broken, so a killed run leaves no orphans; a worker that dies is noticed by its parent.
"""

import multiprocessing
import os
import signal
from collections.abc import Generator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

import torch

from headwise.core.errors import InputError
from headwise.core.workers import end_with_parent
from headwise.lab.crew.messages import Failed, Finished, Progress, WorkerDied
from headwise.lab.kinds import homes
from headwise.lab.run import Run
from headwise.lab.work import perform
from headwise.training import keep_freed_memory


def run_jobs(
    jobs: Sequence[Sequence[Run]], workers: int, unfinished: Path | None = None
) -> Generator[Progress | Finished | Failed]:
    """Work through the jobs, reporting as they go; closing the iterator stops the workers.

    In the folder `unfinished` long jobs leave checkpoints. After `Failed` nothing follows.
    """
    context = multiprocessing.get_context("spawn")
    modules = homes([run for job in jobs for run in job])
    waiting = iter(enumerate(jobs))
    team: dict[Connection, Any] = {}
    try:
        for _ in range(min(workers, len(jobs))):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, modules, unfinished), daemon=True)
            process.start()
            theirs.close()
            team[ours] = process
            ours.send(next(waiting))
        while team:
            for pipe in cast(list[Connection], wait(list(team))):
                message = pipe.recv()
                yield message
                if isinstance(message, Failed):
                    return
                if isinstance(message, Finished):
                    job = next(waiting, None)
                    pipe.send(job)
                    if job is None:
                        team.pop(pipe).join()
    except (EOFError, ConnectionResetError, BrokenPipeError):
        yield Failed(_death(list(team.values())))
    finally:
        for process in team.values():
            process.kill()
            process.join()


def _death(team: list[Any]) -> WorkerDied:
    """Which workers ended, and how."""
    ended = wait([process.sentinel for process in team], timeout=5)
    dead = [process for process in team if process.sentinel in ended]
    for process in dead:
        process.join()  # its files close a moment before its exit code is known
    codes = ", ".join(str(process.exitcode) for process in dead)
    return WorkerDied(f"a worker process died (exit code {codes}); out of memory?")


def _work(pipe: Connection, modules: list[str], unfinished: Path | None) -> None:
    """A worker's life: take a job, report progress, hand in the records, until told to stop."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides what stopping means
    torch.set_num_threads(1)
    keep_freed_memory()
    for module in modules:  # a user's own kinds register themselves
        import_module(module)
    try:
        while (task := pipe.recv()) is not None:
            number, runs = task

            def report(fraction: float, doing: str, number: int = number) -> None:
                pipe.send(Progress(number, fraction))

            try:
                pipe.send(Finished(number, perform(runs, report, unfinished)))
            except InputError as error:
                pipe.send(Failed(error))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the parent is gone: nobody is left to report to
