"""Ray Core tasks: packs of jobs go out, results come in, a few a CPU in flight.

`ray` is imported here only, when it is wanted. A task is tried by Ray once: what is tried again,
and how, is the queue's to say. What every task needs is put into Ray's object store once. Tasks
report to a small actor, which the driver asks once a second.
"""

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwise.core.errors import InputError
from headwise.lab.crew.attempt import Broken
from headwise.lab.crew.cargo import Cargo
from headwise.lab.crew.messages import Job, Message, Progress, Pulse, WorkerDied
from headwise.lab.crew.node import TOKEN, Luggage, check_versions, installed, look_around, run_pack
from headwise.lab.crew.place import Place
from headwise.lab.crew.queue import JobQueue
from headwise.lab.crew.ray_connection import connected

PACK_SECONDS = 20.0
_IN_FLIGHT = 2  # packs a slot: one runs, one waits beside it
_PULSE_SECONDS = 1.0
_CHECK_SECONDS = 60.0

_log = logging.getLogger("headwise")


def slots(place: Place) -> int:
    """How many jobs run at once: CPUs of the cluster now, or fewer if GPUs or the user say so."""
    there = connected(place).cluster_resources()
    most = there.get("CPU", 1.0)
    if place.gpus_per_job:
        most = min(most, there.get("GPU", 0.0) / place.gpus_per_job)
    return max(1, int(min(most, place.jobs or most)))


def run_there(
    jobs: Sequence[Job], queue: JobQueue, place: Place, cargo: Cargo, unfinished: Path | None
) -> Generator[Message]:
    """Work through the jobs as tasks of a Ray cluster."""
    ray = connected(place)
    _check_room(ray, place)
    luggage = _pack_luggage(ray, place, cargo, unfinished)
    board = ray.remote(_board_class()).options(num_cpus=0, max_restarts=-1).remote()
    flying: dict[Any, list[int]] = {}
    try:
        luggage = _checked(ray, luggage)
        sent = ray.put(luggage)
        task = ray.remote(_task).options(
            num_cpus=1, num_gpus=place.gpus_per_job or None, max_retries=0
        )
        pulse, news = 0.0, board.take.remote()
        room = slots(place)
        while queue or flying:
            while len(flying) < min(_IN_FLIGHT * room, place.jobs or _IN_FLIGHT * room):
                pack = queue.take(room, len(flying))
                if not pack:
                    break
                flying[task.remote([(n, jobs[n]) for n in pack], sent, board)] = pack
            for reference in _landed(ray, list(flying)):
                yield from _received(ray, reference, flying.pop(reference), queue)
            if time.monotonic() - pulse >= _PULSE_SECONDS:
                pulse = time.monotonic()
                news, told = _news(ray, board, news)
                running = {number for pack in flying.values() for number in pack}
                yield from (each for each in told if each.job in running)
                room = slots(place)
                yield Pulse(_nodes(ray), room)
    finally:
        for reference in flying:
            ray.cancel(reference, force=True)
        if flying:  # they are killed, not asked: this takes a moment
            ray.wait(list(flying), num_returns=len(flying), timeout=10)
        with suppress(ray.exceptions.RayError):
            ray.kill(board)
        if luggage.folder is not None:
            (luggage.folder / luggage.token).unlink(missing_ok=True)


def _board_class() -> type:
    """Where tasks say how far they are: of every job the last word, kept until it is asked for.

    A class made in a function travels as a whole: its process needs no headwise, and starts at
    once.
    """

    class Board:
        def __init__(self) -> None:
            self.news: dict[int, tuple[float, float]] = {}

        def tell(self, job: int, fraction: float, seconds: float) -> None:
            self.news[job] = fraction, seconds

        def take(self) -> dict[int, tuple[float, float]]:
            news, self.news = self.news, {}
            return news

    return Board


def _task(pack: list[tuple[int, Job]], luggage: Luggage, board: Any) -> list[Any]:
    """The remote function."""
    import ray

    def tell(told: Progress) -> None:
        board.tell.remote(told.job, told.fraction, told.seconds)

    return list(run_pack(pack, luggage, ray.util.get_node_ip_address(), ray.get, tell))


def _look(luggage: Luggage) -> tuple[dict[str, str], bool]:
    return look_around(luggage)


def _pack_luggage(ray: Any, place: Place, cargo: Cargo, unfinished: Path | None) -> Luggage:
    files = {file: ray.put(content) for file, content in cargo.contents().items()}
    return Luggage(
        versions=installed(),
        device=place.device,
        modules=cargo.modules,
        sources=cargo.sources(),
        files=files,
        folder=None if unfinished is None else unfinished.absolute(),
    )


def _checked(ray: Any, luggage: Luggage) -> Luggage:
    """The luggage, after a look at every node that does jobs: refused, if one must be."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if luggage.folder is not None:
        luggage.folder.mkdir(parents=True, exist_ok=True)
        for token in luggage.folder.glob(f"{TOKEN}*"):
            token.unlink(missing_ok=True)  # of a driver that was killed
        (luggage.folder / luggage.token).touch()
    plain = replace(luggage, sources={}, files={})
    looks = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(_look).options(num_cpus=0, scheduling_strategy=there, max_retries=3)
            looks[task.remote(plain)] = node["NodeManagerAddress"]
    apart = []
    for reference, name in looks.items():
        try:
            theirs, shared = ray.get(reference, timeout=_CHECK_SECONDS)
        except (ray.exceptions.NodeDiedError, ray.exceptions.GetTimeoutError):
            continue  # gone, or busy: a task looks at its node's versions itself
        except ray.exceptions.RayError as error:
            last = (str(error).strip().splitlines() or ["no answer"])[-1]
            raise InputError(
                f"node {name} cannot run headwise ({last}); install headwise "
                f"{luggage.versions['headwise']} on every node"
            ) from error
        check_versions(luggage.versions, theirs, name)
        if not shared:
            apart.append(name)
    if luggage.folder is not None and apart:
        _log.warning(
            "No checkpoints of long runs: %s does not see %s. A run that is cut short there starts "
            "again from its beginning.",
            ", ".join(sorted(set(apart))),
            luggage.folder,
        )
    return luggage


def _check_room(ray: Any, place: Place) -> None:
    """Refuse a job that fits on no node: it would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max((node.get("GPU", 0.0) for node in nodes), default=0.0)
    if place.gpus_per_job > most:
        there = (
            f"has more than {most:g} GPUs; ask for that many" if most else "has a GPU; leave it out"
        )
        raise InputError(f"--gpus-per-job {place.gpus_per_job:g}: no node of the cluster {there}")
    if not any(node.get("CPU", 0.0) >= 1 for node in nodes):
        _log.warning("No node of the cluster has a CPU for jobs: waiting for one that joins.")


def _landed(ray: Any, flying: list[Any]) -> list[Any]:
    """The tasks that have ended, waiting a moment for the first."""
    if not flying:
        return []
    ready, _ = ray.wait(flying, num_returns=1, timeout=_PULSE_SECONDS / 2)
    if ready:
        ready, _ = ray.wait(flying, num_returns=len(flying), timeout=0)
    return list(ready)


def _received(ray: Any, reference: Any, pack: list[int], queue: JobQueue) -> Generator[Message]:
    """What came of a pack."""
    try:
        answers = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        yield from queue.failed(pack, cause)
    except ray.exceptions.RayError as error:
        gone = (ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError)
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        death = WorkerDied(f"a task of the cluster ended ({type(error).__name__}: {first})")
        yield from queue.failed(pack, death, lost=isinstance(error, gone))
    else:
        for answer in answers:
            if isinstance(answer, Broken):
                yield from queue.failed([answer.job], answer.error)
            else:
                queue.finished(answer)
                yield answer


def _news(ray: Any, board: Any, asked: Any) -> tuple[Any, list[Progress]]:
    """What the board answered, if it did, and the next question to it."""
    try:
        ready, _ = ray.wait([asked], timeout=0)
        if not ready:
            return asked, []
        told = [Progress(job, *far) for job, far in ray.get(asked).items()]
        return board.take.remote(), told
    except ray.exceptions.RayError:  # its node is gone, and another one is on its way
        return board.take.remote(), []


def _nodes(ray: Any) -> int:
    return sum(node["Alive"] and node["Resources"].get("CPU", 0) > 0 for node in ray.nodes())
