"""The same study on a Ray cluster: equal records, whatever is lost on the way; and what it costs.

Several Ray nodes of this machine stand for a cluster. Every check runs the command line, reads the
stores, and prints one line.

    python benchmarks/robustness/cluster.py equal task-kills         # some, on head-count
    python benchmarks/robustness/cluster.py --study tiny_study:TINY  # all, on a study of seconds
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from headwise.lab.store import Store

LAB = Path(__file__).parents[2] / "tests" / "lab"
sys.path.insert(0, str(LAB))
from small_cluster import small_cluster  # noqa: E402

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(LAB), os.environ.get("PYTHONPATH", "")]),
    "OMP_NUM_THREADS": "1",
}
Contents = dict[str, tuple[object, ...]]


class Bench:
    """A study, its records when nothing disturbs it, and a folder for stores."""

    def __init__(self, study: str, folder: Path) -> None:
        self.study, self.folder = study, folder
        self._undisturbed: tuple[Contents, float] | None = None

    def start(self, store: Path, *options: str, study: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "headwise", "study", "run", study or self.study, "--json"]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [*command, "--store", str(store), *options],
                env=ENVIRONMENT,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def run(self, store: Path, *options: str, study: str = "") -> float:
        begun = time.monotonic()
        code = self.start(store, *options, study=study).wait()
        if code != 0:
            raise SystemExit(f"exit code {code}:\n{(self.folder / 'log').read_text()[-2000:]}")
        return time.monotonic() - begun

    def undisturbed(self) -> tuple[Contents, float]:
        """The records of the local run, and how long it took."""
        if self._undisturbed is None:
            store = self.folder / "local.db"
            seconds = self.run(store)
            self._undisturbed = self.contents(store), seconds
        return self._undisturbed

    def contents(self, store: Path, study: str = "", tier: str = "quick") -> Contents:
        """Everything that must not depend on where and how the study was run."""
        with Store(store) as opened:
            return {
                record.key: (record.specification, record.status, record.result, record.cpu)
                for _, record in opened.records(f"study/{study or self.study}", tier)
            }

    def finished(self, store: Path) -> int:
        """Runs that the store holds, at little cost."""
        if not store.exists():
            return 0
        try:
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
                return int(opened.execute("SELECT count(*) FROM runs").fetchone()[0])
        except sqlite3.OperationalError:  # it may be half a second old
            return 0

    def wait_for(self, store: Path, process: subprocess.Popen[str], runs: int) -> bool:
        """Until so many runs are stored; false if the study ended before."""
        while process.poll() is None:
            if self.finished(store) >= runs:
                return True
            time.sleep(0.2)
        return False

    def compare(self, what: str, store: Path, seconds: float) -> None:
        """Print whether a store's records are those of the local run."""
        expected, took = self.undisturbed()
        found = self.contents(store)
        same = sum(found.get(key) == value for key, value in expected.items())
        print(
            f"{what}: {same} of {len(expected)} records equal, {len(found) - same} others; "
            f"{seconds:.0f} s (local: {took:.0f} s)",
            flush=True,
        )


@contextmanager
def cluster(nodes: int, cpus: int = 1) -> Iterator[tuple[str, Callable[[str], None]]]:
    """The address of a cluster, and a function that tells it to `add` or `remove` a node."""
    with small_cluster(nodes, cpus, ENVIRONMENT) as (address, process):

        def tell(command: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{command}\n")
            process.stdin.flush()
            process.stdout.readline()

        yield f"ray:{address}", tell


def equal(bench: Bench) -> None:
    """Three nodes."""
    store = bench.folder / "equal.db"
    with cluster(3) as (address, _):
        bench.compare("three nodes", store, bench.run(store, "--on", address))


def node_loss(bench: Bench) -> None:
    """Of three nodes one is lost in the middle, and another joins."""
    store, total = bench.folder / "loss.db", len(bench.undisturbed()[0])
    with cluster(3) as (address, tell):
        begun = time.monotonic()
        process = bench.start(store, "--on", address)
        lost_at = joined_at = -1
        if bench.wait_for(store, process, total // 4):
            lost_at = bench.finished(store)
            tell("remove")
        if bench.wait_for(store, process, total // 2):
            joined_at = bench.finished(store)
            tell("add")
        code = process.wait()
        what = f"a node lost after {lost_at} runs, another joined after {joined_at} (exit {code})"
        bench.compare(what, store, time.monotonic() - begun)


def task_kills(bench: Bench, kills: int = 10) -> None:
    """Processes of tasks are killed at random moments."""
    store, chance = bench.folder / "kills.db", random.Random(0)
    _, took = bench.undisturbed()
    with cluster(3) as (address, _):
        begun = time.monotonic()
        process = bench.start(store, "--on", address)
        killed = 0
        while killed < kills and process.poll() is None:
            time.sleep(chance.uniform(0.3, 0.7) * took / kills)
            victims = processes("ray::_task")
            if victims:
                os.kill(chance.choice(victims), signal.SIGKILL)
                killed += 1
        code = process.wait()
        what = f"{killed} tasks killed with -9 (exit {code})"
        bench.compare(what, store, time.monotonic() - begun)


def driver_kill(bench: Bench) -> None:
    """The driver is killed with -9 in the middle, and started again."""
    store, total = bench.folder / "driver.db", len(bench.undisturbed()[0])
    with cluster(3) as (address, _):
        begun = time.monotonic()
        process = bench.start(store, "--on", address)
        bench.wait_for(store, process, total // 3)
        process.kill()
        process.wait()
        with Store(store) as opened:
            before = {r.key: r.finished for _, r in opened.records(f"study/{bench.study}", "quick")}
        time.sleep(5)
        left = len(processes("ray::_task"))
        bench.run(store, "--on", address)
        with Store(store) as opened:
            after = {r.key: r.finished for _, r in opened.records(f"study/{bench.study}", "quick")}
        again = sum(after[key] != stamp for key, stamp in before.items())
        what = f"driver killed after {len(before)} runs, {left} tasks left, {again} run again"
        bench.compare(what, store, time.monotonic() - begun)


def worker_kill(bench: Bench) -> None:
    """Locally: a worker is killed in the middle."""
    store, total = bench.folder / "worker.db", len(bench.undisturbed()[0])
    begun = time.monotonic()
    process = bench.start(store)
    bench.wait_for(store, process, total // 3)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    code = process.wait()
    bench.compare(f"a local worker killed (exit {code})", store, time.monotonic() - begun)


def trivial(bench: Bench) -> None:
    """20,000 runs that do nothing, locally and through Ray."""
    study = "poor_study:TRIVIAL"
    for name, options in {"local": [], "ray": ["--on", "ray"]}.items():
        store = bench.folder / f"trivial-{name}.db"
        sizes: dict[int, tuple[float, float]] = {}
        begun = time.monotonic()
        process = bench.start(store, "--tier", "full", *options, study=study)
        while process.poll() is None:
            if count := bench.finished(store):
                sizes.setdefault(count, (time.monotonic(), _resident(process.pid)))
            time.sleep(0.3)
        seconds, found = time.monotonic() - begun, bench.contents(store, study, "full")
        (least, (early, small)), (most, (late, large)) = min(sizes.items()), max(sizes.items())
        print(
            f"20,000 trivial runs, {name}: {len(found)} records in {seconds:.0f} s with start, "
            f"check and summary; {(most - least) / (late - early):.0f} a second from run {least} "
            f"to {most}; driver {small:.0f} MB at run {least}, {large:.0f} MB at run {most} "
            f"(exit {process.returncode})",
            flush=True,
        )


def overhead(bench: Bench, pairs: int = 2) -> None:
    """Ray on this machine against local processes, by turns; Ray is up before."""
    here, there = [], []
    with cluster(1, os.cpu_count() or 1) as (address, _):
        for number in range(pairs):
            here.append(bench.run(bench.folder / f"here-{number}.db"))
            store = bench.folder / f"there-{number}.db"
            there.append(bench.run(store, "--on", address))
    times = ", ".join(f"{ray:.0f}/{local:.0f}" for ray, local in zip(there, here, strict=True))
    what = f"Ray on this machine, {sum(there) / sum(here):.2f}× the local time ({times} s)"
    bench.compare(what, store, there[-1])


def processes(title: str) -> list[int]:
    """Processes whose title begins so."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            begins = (folder / "cmdline").read_bytes().startswith(title.encode())
            if folder.name.isdecimal() and begins:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def workers_of(process: int) -> list[int]:
    """Local worker processes of a driver."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def _resident(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


CHECKS = {
    "equal": equal,
    "node-loss": node_loss,
    "task-kills": task_kills,
    "driver-kill": driver_kill,
    "worker-kill": worker_kill,
    "trivial": trivial,
    "overhead": overhead,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--study", default="head-count", help="a study with a quick tier")
    arguments = parser.parse_args()
    unknown = set(arguments.checks) - set(CHECKS)
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.study, Path(folder))
        for name in arguments.checks or CHECKS:
            CHECKS[name](bench)


if __name__ == "__main__":
    main()
