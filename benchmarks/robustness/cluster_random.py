"""Random studies with known records, in processes of this machine and on a Ray cluster.

In every other round a process that is at work is killed from outside, too.

    python benchmarks/robustness/cluster_random.py --rounds 20
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import ray

from cluster import ENVIRONMENT, LAB, cluster, processes, workers_of

sys.path.insert(0, str(LAB))
from random_study import MARKS, ONCE, draw

from headwise import run_study
from headwise.lab.store import Store


def killing(chance: random.Random, local: bool) -> None:
    """Kill a process at work, a moment from now."""

    def kill() -> None:
        deadline = time.monotonic() + 20
        time.sleep(chance.uniform(0.5, 4))
        while time.monotonic() < deadline:
            found = workers_of(os.getpid()) if local else processes("ray::_task")
            if found:
                os.kill(chance.choice(found), signal.SIGKILL)
                return
            time.sleep(0.05)

    threading.Thread(target=kill, daemon=True).start()


def records(store: Path, owner: str) -> tuple[dict[str, Any], dict[str, float], set[str]]:
    """All that must be equal, the numbers of what ended well, and the keys of what failed."""
    with Store(store) as opened:
        done = [record for _, record in opened.records(owner, "quick")]
        failed = {record.key for _, record in opened.records(owner, "quick", failed=True)}
    plain = {each.key: (each.specification, each.result, each.status, each.cpu) for each in done}
    return plain, {each.key: each.result["error"] for each in done}, failed


def round_of(number: int, address: str, folder: Path, marks: Path) -> bool:
    """One study here and there: as known, and equal?"""
    study, well, failing = draw(number)
    chance = random.Random(number)
    # Who dies once by itself is not killed again: a third time would be one too many.
    once = any(run.task.way == ONCE for run in study.runs("quick")["all"])
    found = {}
    for on in ("local", address):
        store = folder / f"{number}-{len(found)}.db"
        for mark in marks.iterdir():
            mark.unlink()
        if not once:
            killing(chance, on == "local")
        run_study(study, store=store, on=on, jobs=chance.choice((1, 2, None)))
        found[on] = records(store, study.owner)
    same = found["local"] == found[address]
    known = all(each[1:] == (well, failing) for each in found.values())
    print(
        f"study {number}: {len(well)} runs end well, {len(failing)} fail, "
        f"{'none' if once else 'one'} killed from outside: "
        f"{'as known' if known else 'NOT AS KNOWN'}, {'equal' if same else 'NOT EQUAL'}",
        flush=True,
    )
    return same and known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder, "marks")
        marks.mkdir()
        os.environ[MARKS] = ENVIRONMENT[MARKS] = str(marks)
        with cluster(2) as (address, _):
            numbers = range(asked.first, asked.first + asked.rounds)
            good = sum(round_of(number, address, Path(folder), marks) for number in numbers)
            ray.shutdown()
    print(f"{good} of {asked.rounds} random studies: here and on Ray as known, and equal")


if __name__ == "__main__":
    main()
