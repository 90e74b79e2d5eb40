"""All attempts of an evaluation, in worker processes, each kept in a file as it is finished."""

import json
import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from headwise.advise.probe.judged.attempt import Assignment, Way, ZooAttempt, make_attempt
from headwise.core.errors import InputError, require
from headwise.core.files import append_line
from headwise.core.progress import OnProgress, quiet


def perform(
    seed: int,
    indices: Iterable[int],
    ways: tuple[Way, ...],
    samples: int,
    seconds: float,
    workers: int,
    kept: Path | None = None,
    on_progress: OnProgress = quiet,
) -> list[ZooAttempt]:
    """The attempts in the order of the tasks, whoever finished first.

    What the file `kept` has is not done again, and what is done is added to it at once.
    """
    asked = [Assignment(seed, index, way, samples, seconds) for index in indices for way in ways]
    known = {attempt.assignment: attempt for attempt in read_attempts(kept)}
    todo = [each for each in asked if each not in known]
    done = len(asked) - len(todo)
    for attempt in _attempts(todo, workers):
        done += 1
        if attempt is None:
            continue
        known[attempt.assignment] = attempt
        if kept is not None:
            append_line(kept, json.dumps(attempt.to_data(), ensure_ascii=False))
        on_progress(done / len(asked), str(attempt))
    return [known[each] for each in asked if each in known]


def read_attempts(kept: Path | None) -> list[ZooAttempt]:
    """What the file has; a line that a kill cut short does not count."""
    if kept is None or not kept.exists():
        return []
    try:
        lines = kept.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{kept} cannot be read: {error}") from error
    found = []
    for line in lines:
        try:
            found.append(ZooAttempt.from_data(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    require(
        bool(found) or not lines,
        f"{kept} holds something else than attempts of probe-eval; choose another file",
    )
    return found


def _attempts(todo: list[Assignment], workers: int) -> Iterator[ZooAttempt | None]:
    """One thread a process, whether one or many: the same sums in the same order."""
    if workers == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield from map(make_attempt, todo)
        finally:
            torch.set_num_threads(threads)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin)
    try:
        for future in as_completed([pool.submit(make_attempt, each) for each in todo]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the worker, without a traceback
    torch.set_num_threads(1)
