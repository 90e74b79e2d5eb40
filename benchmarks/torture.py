"""Kill studies, plans, probes and compressions at random moments, rerun, compare record by record.

    python benchmarks/torture.py                     # 300 kills
    python benchmarks/torture.py --kills 12          # a few
    python benchmarks/torture.py --only study plan   # some of the four

Every round starts the work, waits until it has kept something new (or a random while), and sends
SIGKILL to the process itself or to one of its workers. When a round is quicker than its killer, the
result is compared with that of a run nobody disturbed: records lost, doubled, different. After
each kill the workers must be gone; the longest time that took is in the table. Exit code 1:
something was lost, doubled or different, or a worker outlived its parent by more than two seconds.

The work is tiny and starts as a fork of this process, so that a round takes a second or two and not
the time that importing torch takes.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headwise
from headwise.advise.plan import scale
from headwise.advise.plan.measured import measured_plan
from headwise.advise.plan.race import Rungs
from headwise.advise.plan.request import PlanRequest
from headwise.lab.crew import Place
from headwise.lab.run import Run
from headwise.lab.study import Tier
from headwise.nets import ClassTokenShape
from headwise.studies.head_count.synthetic import HEAD_COUNT
from headwise.tasks import Language
from headwise.tasks.retrieval import sum_of_maxima
from headwise.training import Training
from headwise.training.fused.scope import available

ALLOWED = 2.0  # seconds within which workers must be gone
Records = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """Work that keeps what it has done in a folder, and how to read what is kept."""

    work: Callable[[Path], None]
    records: Callable[[Path], Records]


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


def study(folder: Path) -> None:
    """A study of 24 trainings on two workers."""
    training = Training(steps=400, rate=1e-2, samples=128, validation=64, evaluations=2)
    runs = [
        Run(
            kind="class-token",
            task=sum_of_maxima(length, intrinsic_dim=2),
            net=ClassTokenShape.standard(token_dim=4, heads=heads, width=8, head_dim=4),
            training=training,
            seed=seed,
        )
        for length in (4, 6)
        for heads in (1, 2, 3)
        for seed in range(4)
    ]
    tiers = {"quick": Tier("a second", lambda: {"transition": runs})}
    tiny = replace(HEAD_COUNT, name="torture", tiers=tiers)
    headwise.run_study(tiny, store=folder / "a.db", jobs=2)


def plan(folder: Path) -> None:
    """A plan of two layers: a decoder to cut, a race, fresh seeds."""
    words = ["the", "head", "looks", "back", "at", "every", "token", "before", "it"]
    text = folder / "words.txt"
    text.write_text(" ".join(np.random.default_rng(0).choice(words, 4000)))
    request = PlanRequest(
        layers=2,
        width=32,
        length=16,
        budget=2 * 4 * 32 * 32,
        seconds=900,
        rungs=(Rungs(seeds=(1,), enter=(1000,), fresh=2),),
        place=Place(jobs=2),
    )
    made = measured_plan(request, lambda n: Language.from_file(text, n), folder / "a.db")
    (folder / "plan.json").write_text(made.to_json())


def probe(folder: Path) -> None:
    """A probe of 600 short sequences, with its state in a file."""
    task = sum_of_maxima(4, intrinsic_dim=2)
    inputs, targets = task.sample(600, (1, 2))
    found = headwise.probe(
        inputs, targets, max_heads=3, seconds=900, jobs=2, state=folder / "state.json"
    ).to_data()
    del found["seconds"]
    (folder / "finding.json").write_text(json.dumps(found, sort_keys=True))


def compression(folder: Path) -> None:
    """A compression of a model of two layers, written to a new folder."""
    headwise.compress(
        str(folder.parent / "model"), keep=0.5, tokens=400, out=folder / "out", time_it=False
    )


def rows(folder: Path) -> Records:
    """The runs in a store, and the plan; not how fast a run was, which is its own."""
    found: Records = {}
    if (folder / "a.db").exists():
        database = sqlite3.connect(folder / "a.db", timeout=20)
        query = "SELECT key, specification, seed, status, result FROM runs"
        with suppress(sqlite3.OperationalError):  # a moment old: without tables yet
            for key, *rest, result in database.execute(query):
                kept = json.loads(result)
                kept.get("facts", {}).pop("tokens_per_second", None)
                found[key if key not in found else f"{key} again"] = [*rest, kept]
        database.close()
    if (folder / "plan.json").exists():
        found["plan"] = (folder / "plan.json").read_text()
    return found


def descents(folder: Path) -> Records:
    """What a probe's state holds, and the finding."""
    found: Records = {}
    if (folder / "state.json").exists():
        for probes in json.loads((folder / "state.json").read_text())["probes"].values():
            found |= probes
    if (folder / "finding.json").exists():
        found["finding"] = (folder / "finding.json").read_text()
    return found


def files(folder: Path) -> Records:
    """The hashes of what was written; a scratch folder left by a kill is no result."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "out").glob("*"))
        if path.name != "headwise_report.json"  # it holds when
    }


SUBJECTS = {
    "study": Subject(study, rows),
    "plan": Subject(plan, rows),
    "probe": Subject(probe, descents),
    "compression": Subject(compression, files),
}


def started(work: Callable[[Path], None], folder: Path) -> int:
    """The work in a process, and a group, of its own."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
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


def disturb(
    subject: Subject, folder: Path, dice: random.Random, tally: Tally, whole: float
) -> bool:
    """Start the work and kill it, or a worker of it, after it kept something; False if it was done.

    A study whose worker is killed goes on, and must come to the same end. `whole` is how long the
    whole work takes, in seconds.
    """
    before = len(subject.records(folder))
    child = started(subject.work, folder)
    begun, patience = time.monotonic(), dice.uniform(0, whole)
    while len(subject.records(folder)) == before and time.monotonic() - begun < patience:
        time.sleep(0.02)
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
    time.sleep(dice.uniform(0, 0.1 * whole))
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


def torture(subject: Subject, kills: int, dice: random.Random, place: Path) -> Tally:
    """Kill the work so many times, finish it each time it gets that far, and compare."""
    tally = Tally()
    undisturbed = place / "undisturbed"
    undisturbed.mkdir()
    begun = time.monotonic()
    _, status = os.waitpid(started(subject.work, undisturbed), 0)
    whole = time.monotonic() - begun
    if status != 0:
        tally.failures.append((undisturbed / "log").read_text()[-2000:])
        return tally
    wanted = subject.records(undisturbed)
    folder, number = place / "0", 0
    folder.mkdir()
    while True:
        over = tally.kills >= kills
        if over:
            _, status = os.waitpid(started(subject.work, folder), 0)
            if status != 0:
                tally.failures.append((folder / "log").read_text()[-2000:])
        if over or not disturb(subject, folder, dice, tally, whole):
            compare(subject.records(folder), wanted, tally)
            tally.finished += 1
            number += 1
            folder = place / str(number)
            folder.mkdir()
        if over:
            return tally


def prepare(place: Path) -> None:
    """One thread, forked workers, short trials; and a model to compress."""
    torch.set_num_threads(1)
    os.environ["HEADWISE_CACHE"] = str(place / "cache")
    scale._MOST_STEPS, scale._TOKENS_A_STEP = 60, 128
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment]


def write_model(place: Path) -> None:
    """A random GPT-2 of two layers with a tokenizer of bytes."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = {name: number for number, name in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    core = Tokenizer(models.BPE(vocab=names, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=core).save_pretrained(place / "model")
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=256, n_positions=64)
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    transformers.GPT2LMHeadModel(config).save_pretrained(place / "model")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
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
                write_model(place)
            kills = -(-options.kills // len(options.only))
            dice = random.Random(1000 * options.seed + number)
            tally = torture(SUBJECTS[name], kills, dice, place)
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
