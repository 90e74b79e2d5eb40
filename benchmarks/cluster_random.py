"""Random studies with known records, in processes of this machine and on a Ray cluster.

In every other round a process that is at work is killed from outside, too.

    python benchmarks/cluster_random.py --rounds 20
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster import LAB, cluster, processes, workers_of

MARKS = Path(tempfile.mkdtemp())
os.environ["RANDOM_STUDY_MARKS"] = str(MARKS)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    sys.path.insert(0, str(LAB))
    from random_study import ONCE, draw

    from headwise import run_study
    from headwise.lab.store import Store

    agreed = 0
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (address, _):
        for number in range(arguments.first, arguments.first + arguments.rounds):
            study, well, failing = draw(number)
            chance = random.Random(number)
            once = any(run.task.way == ONCE for run in study.runs("quick")["all"])
            found = {}
            for on in ("local", address):
                store = Path(folder, f"{number}-{'local' if on == 'local' else 'ray'}.db")
                for mark in MARKS.iterdir():
                    mark.unlink()
                if not once:  # who dies once by itself is left alone: a third time is one too many
                    killing(chance, on == "local")
                run_study(study, store=store, on=on, jobs=chance.choice((1, 2, None)))
                with Store(store) as opened:
                    done = {r.key: r for _, r in opened.records(study.owner, "quick")}
                    bad = {r.key for _, r in opened.records(study.owner, "quick", failed=True)}
                plain = {key: (r.specification, r.result, r.status) for key, r in done.items()}
                right = {key: r.result["error"] for key, r in done.items()} == well
                found[on] = plain, bad, right and bad == failing
            same = found["local"][:2] == found[address][:2]
            known = all(each[2] for each in found.values())
            agreed += same and known
            print(
                f"round {number}: {len(well)} runs end well, {len(failing)} fail, "
                f"{'none' if once else 'one'} killed from outside: "
                f"{'as known' if known else 'NOT AS KNOWN'}, {'equal' if same else 'NOT EQUAL'}",
                flush=True,
            )
    shutil.rmtree(MARKS)
    print(f"{agreed} of {arguments.rounds} random studies: local and Ray as known, and equal")


if __name__ == "__main__":
    main()
