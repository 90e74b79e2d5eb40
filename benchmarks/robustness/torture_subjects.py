"""What `torture.py` kills: a study, a plan, a probe and a compression, all tiny."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import headwise
from headwise.advise.plan.measured import measured_plan
from headwise.advise.plan.race import Rungs
from headwise.advise.plan.request import PlanRequest
from headwise.core.progress import quiet
from headwise.lab.crew import Place
from headwise.lab.run import Run
from headwise.lab.study import Tier
from headwise.lab.work import perform
from headwise.nets import AttentionShape, ClassTokenShape, DecoderShape
from headwise.studies.head_count.synthetic import HEAD_COUNT
from headwise.tasks import Language
from headwise.tasks.retrieval import sum_of_maxima
from headwise.training import TextTraining, Training

Records = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """Work that keeps what it has done in a folder, and how to read what is kept."""

    work: Callable[[Path], None]
    records: Callable[[Path], Records]

    def kept(self, folder: Path) -> set[str]:
        """What is there that a kill could lose: records, and what the cache holds."""
        cached = (path.name for path in (folder / "cache").rglob("*.safetensors"))
        return {*self.records(folder), *(name for name in cached if not name.startswith("."))}


def study(folder: Path) -> None:
    """A study of 24 trainings on two workers."""
    training = Training(steps=3000, rate=1e-2, samples=128, validation=64, evaluations=2)
    tasks = [sum_of_maxima(length, intrinsic_dim=2) for length in (4, 6)]
    nets = [ClassTokenShape.standard(token_dim=4, heads=h, width=8, head_dim=4) for h in (1, 2, 3)]
    runs = [
        Run(kind="class-token", task=task, net=net, training=training, seed=seed)
        for task, net, seed in product(tasks, nets, range(4))
    ]
    tiers = {"quick": Tier("a second", lambda: {"transition": runs})}
    tiny = replace(HEAD_COUNT, name="torture", tiers=tiers)
    headwise.run_study(tiny, store=folder / "a.db", jobs=2)


def warm_up(folder: Path) -> None:
    """What headwise and torch import late, every fork then has; a decoder is trained for a step."""
    assert all(map(callable, (headwise.run_study, headwise.probe, headwise.compress)))
    (folder / "a.txt").write_text("the head looks back at every token before it. " * 40)
    layers = (AttentionShape(heads=1, qk_dim=2, v_dim=2),)
    for positions in ("rope", "learned"):
        net = DecoderShape(
            vocabulary=256, width=4, layers=layers, ffn=4, length=4, positions=positions
        )
        task = Language.from_file(folder / "a.txt", 4)
        training = TextTraining(steps=1, rate=0.01, batch=1, validation=8, evaluations=1)
        perform([Run(kind="text", task=task, net=net, training=training, seed=0)], quiet)


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
