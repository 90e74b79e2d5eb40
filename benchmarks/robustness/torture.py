"""Kill studies, plans, probes and compressions at random moments, rerun, compare record by record.

    python benchmarks/robustness/torture.py                     # 300 kills
    python benchmarks/robustness/torture.py --kills 12          # a few
    python benchmarks/robustness/torture.py --only study plan   # some of the four
    python benchmarks/robustness/torture.py --minutes 10        # kill for at most so long, each

Every round starts the work, waits until it has kept something that was not there before, and then
a random while, and sends SIGKILL to the process itself or to one of its workers (a probe and a
compression have none). When a round is quicker than its killer, the result is compared with that of
a run nobody disturbed: records lost, doubled, different. After each kill the workers must be gone;
the longest time that took is in the table. Exit code 1: something was lost, doubled or different,
or a worker outlived its parent by more than two seconds.

The work is tiny and starts as a fork of this process, so that a round takes a second or two and not
the time that importing torch takes.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import torch

from byte_model import write_byte_model
from headwise.advise.plan import scale
from headwise.training.fused.scope import available
from torture_subjects import SUBJECTS, Records, Subject, warm_up

ALLOWED = 2.0  # seconds within which workers must be gone


@dataclass
class Tally:
    """What came of the kills of one subject."""

    kills: int = 0
    of_workers: int = 0
    finished: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Nothing lost, doubled or different, and no worker that stays."""
        wrong = self.lost + self.doubled + self.different + len(self.failures)
        return wrong == 0 and self.slowest <= ALLOWED


def started(work: Callable[[Path], None], folder: Path) -> int:
    """The work in a process, and a group, of its own; its cache lies in its folder."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.environ["HEADWISE_CACHE"] = str(folder / "cache")
        quiet = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        work(folder)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def workers_of(parent: int) -> list[int]:
    """Its children."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def alive(process: int) -> bool:
    """Is it there, and not a zombie that somebody has yet to collect?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def seconds_until_gone(processes: list[int]) -> float:
    """How long they stayed."""
    begun = time.monotonic()
    while any(map(alive, processes)) and time.monotonic() - begun < 30:
        time.sleep(0.005)
    return time.monotonic() - begun


def disturb(subject: Subject, folder: Path, dice: random.Random, tally: Tally, rest: float) -> bool:
    """Start the work and kill it, or a worker of it, once it has got on; False if it was done.

    A study whose worker is killed goes on, and must come to the same end. `rest` is how long the
    work takes, in seconds, once it has kept something.
    """
    before = subject.kept(folder)
    child = started(subject.work, folder)
    moment = inf
    while time.monotonic() < moment:
        if moment == inf and subject.kept(folder) - before:
            soon = dice.choice([0.2, 0.2, 0.8])  # mostly, for many kills; now and then it may end
            moment = time.monotonic() + dice.uniform(0, soon * rest)
        time.sleep(0.02)
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
    team = workers_of(child)
    kill_worker = bool(team) and dice.random() < 0.4
    victim = dice.choice(team) if kill_worker else child
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        kill_worker = False
    _, status = os.waitpid(child, 0)
    survived = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    if survived and not kill_worker:  # it was done before the signal reached it
        return False
    tally.kills += 1
    tally.of_workers += kill_worker
    tally.slowest = max(tally.slowest, seconds_until_gone(team))
    return not survived


def compare(found: Records, wanted: Records, tally: Tally) -> None:
    """Count what is lost, doubled and different."""
    tally.lost += len(wanted.keys() - found.keys())
    tally.doubled += len(found.keys() - wanted.keys())
    tally.different += sum(found[key] != wanted[key] for key in found.keys() & wanted.keys())


def torture(
    subject: Subject, kills: int, seconds: float, dice: random.Random, place: Path
) -> Tally:
    """Kill the work so often, or so long; finish it each time it gets that far, and compare."""
    tally, end = Tally(), time.monotonic() + seconds
    undisturbed = place / "undisturbed"
    undisturbed.mkdir()
    child = started(subject.work, undisturbed)
    while not subject.kept(undisturbed) and alive(child):
        time.sleep(0.02)
    begun = time.monotonic()
    _, status = os.waitpid(child, 0)
    rest = time.monotonic() - begun
    if status != 0:
        tally.failures.append((undisturbed / "log").read_text()[-2000:])
        return tally
    wanted = subject.records(undisturbed)
    folder, number = place / "0", 0
    folder.mkdir()
    while True:
        over = tally.kills >= kills or time.monotonic() > end
        if over:
            _, status = os.waitpid(started(subject.work, folder), 0)
            if status != 0:
                tally.failures.append((folder / "log").read_text()[-2000:])
        if over or not disturb(subject, folder, dice, tally, rest):
            compare(subject.records(folder), wanted, tally)
            tally.finished += 1
            number += 1
            folder = place / str(number)
            folder.mkdir()
        if over:
            return tally


def prepare(place: Path) -> None:
    """One thread, forked workers, short trials; what training imports late is inherited."""
    torch.set_num_threads(1)
    os.environ["HEADWISE_CACHE"] = str(place / "cache")
    warm_up(place)
    scale._FEWEST_STEPS = scale._MOST_STEPS = 20
    scale._TOKENS_A_STEP = 128
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    options = parser.parse_args()
    print(f"{'':12} kills (workers)  finished  lost  doubled  different  workers gone within")
    sound = True
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        if {"study", "probe"} & set(options.only):
            available()  # the kernel, compiled once and inherited
        prepare(Path(root))
        for number, name in enumerate(options.only):
            place = Path(root, name)
            place.mkdir()
            if name == "compression":
                write_byte_model(place / "model", width=32, heads=4, length=64)
            kills = -(-options.kills // len(options.only))
            dice = random.Random(1000 * options.seed + number)
            tally = torture(SUBJECTS[name], kills, 60 * options.minutes, dice, place)
            print(
                f"{name:12} {tally.kills:5} {f'({tally.of_workers})':>9} {tally.finished:9} "
                f"{tally.lost:5} {tally.doubled:8} {tally.different:10}  {tally.slowest:.2f} s",
                flush=True,
            )
            for failure in tally.failures:
                print(failure, file=sys.stderr)
            sound = sound and tally.sound
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
