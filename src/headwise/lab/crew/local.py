"""Worker processes of this machine: one torch thread each, jobs in, results out.

Each worker has a pipe of its own. A worker whose parent is gone is ended by the system, so a killed
run leaves no orphans; a worker that dies is noticed by its parent, which hires another.
"""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

from headwise.core.device import computing_on, find_device
from headwise.core.errors import InputError, require
from headwise.core.workers import UNGUARDED, end_with_parent
from headwise.lab.crew.attempt import Broken, attempt, settle_in
from headwise.lab.crew.messages import Finished, Job, Message, Progress, Pulse, WorkerDied
from headwise.lab.crew.queue import JobQueue

PACK_SECONDS = 0.5  # a pipe is quick: pack only what would make many messages a second
_PULSE_SECONDS = 0.25

_waiting: ContextVar["list[_Worker] | None"] = ContextVar("_waiting", default=None)


@contextmanager
def keeping_workers() -> Iterator[None]:
    """Within it, workers with nothing left to do wait for the next jobs.

    A worker takes seconds to start, which work of many small steps would pay at every step.
    """
    mine: list[_Worker] = []
    before = _waiting.set(mine)
    try:
        yield
    finally:
        _waiting.reset(before)
        for worker in mine:
            worker.dismiss()


class _Worker:
    """A process, our end of its pipe, and the jobs it has; the first is the one it is doing."""

    def __init__(self, modules: Sequence[str], unfinished: Path | None, device: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_work, args=(theirs, modules, unfinished, device), daemon=True
        )
        self.process.start()
        theirs.close()
        self.pack: deque[int] = deque()
        self.settled = (tuple(modules), unfinished, device)

    def death(self) -> WorkerDied:
        """How it ended."""
        self.process.join(5)  # its files close a moment before its exit code is known
        code = self.process.exitcode
        require(
            code != UNGUARDED,
            "worker processes import the script that starts them, and this one would begin anew in "
            "each: call headwise below if __name__ == '__main__':",
        )
        return WorkerDied(f"a worker process died (exit code {code}); out of memory?")

    def dismiss(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_here(
    jobs: Sequence[Job],
    queue: JobQueue,
    workers: int,
    modules: Sequence[str],
    unfinished: Path | None,
    device: str,
) -> Generator[Message]:
    """Work through the jobs in processes of this machine."""
    find_device(device)  # before a process starts
    team = _called_back((tuple(modules), unfinished, device))
    pulse = time.monotonic()
    try:
        while queue or any(worker.pack for worker in team):
            _hand_out(jobs, queue, team, workers, modules, unfinished, device)
            busy = {worker.pipe: worker for worker in team if worker.pack}
            for pipe in cast(list[Connection], wait(list(busy), _PULSE_SECONDS)):
                worker = busy[pipe]
                message = _said(pipe)
                if message is None:
                    team.remove(worker)
                    error = worker.death()
                    queue.put_back(list(worker.pack)[1:])
                    yield from queue.failed([worker.pack[0]], error)
                    continue
                if not isinstance(message, Progress):
                    worker.pack.popleft()
                if isinstance(message, Broken):
                    yield from queue.failed([message.job], message.error)
                    continue
                if isinstance(message, Finished):
                    queue.finished(message)
                yield message
            if time.monotonic() - pulse >= _PULSE_SECONDS:
                pulse = time.monotonic()
                yield Pulse(1, workers)
    finally:
        _send_home(team)


def _called_back(settled: tuple[object, ...]) -> list[_Worker]:
    """The workers who wait, and are at home in such jobs."""
    waiting = _waiting.get() or []
    called = [worker for worker in waiting if worker.settled == settled]
    waiting[:] = [worker for worker in waiting if worker not in called]
    return called


def _send_home(team: list[_Worker]) -> None:
    """Those with nothing left to do may wait; nobody else is needed any more."""
    waiting = _waiting.get()
    for worker in team:
        if waiting is None or worker.pack:
            worker.dismiss()
        else:
            waiting.append(worker)


def _said(pipe: Connection) -> Message | Broken | None:
    """What a worker says; None if it is gone."""
    try:
        return cast(Message | Broken, pipe.recv())
    except (EOFError, ConnectionResetError):
        return None


def _hand_out(
    jobs: Sequence[Job],
    queue: JobQueue,
    team: list[_Worker],
    workers: int,
    modules: Sequence[str],
    unfinished: Path | None,
    device: str,
) -> None:
    """Give every worker that has nothing to do a pack, and hire where too few are left."""
    while queue:
        idle = next((worker for worker in team if not worker.pack), None)
        if idle is None and len(team) >= workers:
            return
        pack = queue.take(workers, sum(bool(worker.pack) for worker in team))
        if not pack:
            return
        if idle is None:
            idle = _Worker(modules, unfinished, device)
            team.append(idle)
        idle.pack.extend(pack)
        try:
            idle.pipe.send([(number, jobs[number]) for number in pack])
        except (BrokenPipeError, ConnectionResetError):
            return  # it died while it had nothing to do: its pipe says so at the next wait


def _work(pipe: Connection, modules: Sequence[str], unfinished: Path | None, device: str) -> None:
    """A worker's life: take a pack, report progress, hand in the results, until it is ended."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides what stopping means
    refusal = None
    try:
        settle_in(modules)
    except Exception as error:  # the same for every job: no use in trying them all
        refusal = InputError(f"a worker process cannot start: {type(error).__name__}: {error}")
    try:
        with computing_on(device):
            while True:
                for number, job in pipe.recv():
                    if refusal is not None:
                        pipe.send(Broken(number, refusal))
                        continue
                    _answer(pipe, number, attempt(number, job, pipe.send, 0.25, unfinished))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the parent is gone: nobody is left to report to


def _answer(pipe: Connection, number: int, answer: Finished | Broken) -> None:
    try:
        pipe.send(answer)
    except (TypeError, AttributeError, ValueError) as error:  # it cannot be pickled
        pipe.send(Broken(number, RuntimeError(f"the result cannot be sent: {error}")))
