"""All attempts of an evaluation, many at once, each kept in a file as it is finished."""

import json
from collections.abc import Iterable
from pathlib import Path

from headwise.advise.probe.judged.attempt import Assignment, Way, ZooAttempt, make_attempt
from headwise.core.errors import InputError, require
from headwise.core.files import append_line, read_bytes
from headwise.core.progress import OnProgress, quiet
from headwise.lab.crew import Job, Place, results_of


def perform(
    seed: int,
    indices: Iterable[int],
    ways: tuple[Way, ...],
    samples: int,
    seconds: float,
    place: Place,
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
    work = f"{__name__}:do_assignment"
    jobs = [Job(work, (each,), label=each.given) for each in todo]
    for _, attempt in results_of(jobs, place):
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
        lines = read_bytes(kept).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
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


def do_assignment(
    assignment: Assignment, on_progress: OnProgress, folder: Path | None
) -> ZooAttempt | None:
    """One attempt as a job; it leaves nothing to go on from."""
    return make_attempt(assignment)
