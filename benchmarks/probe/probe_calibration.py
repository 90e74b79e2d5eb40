"""Collect readings of zoo tasks and fit the weights of `headwise.advise.probe.calibration`.

    python benchmarks/probe/probe_calibration.py collect readings.jsonl --seed 11 --tasks 200
    python benchmarks/probe/probe_calibration.py fit readings.jsonl

The first trains (some 15 CPU-seconds a task) and adds a line a task, so it can be stopped; the
second prints weights to copy into that module, and what the answers would have been.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.advise.probe import calibration
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.screening import choose_positions
from headwise.advise.probe.descent.search import find_transition
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.transition import Transition
from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.trust import judge_training
from headwise.advise.probe.zoo import draw_task

MOST_HEADS, SAMPLES = 12, 20_000
_TABLES = ("errors", "train_errors", "fixed_readers", "likeness", "breadth")
RIDGE = 0.5  # few tasks, five weights: pulls them towards the present ones


def collect(file: Path, seed: int, tasks: int) -> None:
    """Descents and the control of every task, a line each."""
    known = {json.loads(line)["index"] for line in _lines(file)}
    for index in range(tasks):
        if index in known:
            continue
        task = draw_task(seed, index)
        drawn = task.sample(SAMPLES, (seed, index, 1))
        samples = Samples.of(drawn.inputs, drawn.targets, drawn.mask)
        if samples.constant or samples.distinct < 500:
            continue
        clock = Clock(1e6)
        positions, data = choose_positions(samples, 0, clock)
        found = find_transition(data, MOST_HEADS, 0, clock, DescentFile(None, ""), 1)
        row = {
            "index": index,
            "about": str(task),
            "right": [str(each) for each in task.acceptable],
            "positions": positions,
            "pooled": found.pooled,
            "forms": found.forms,
            "labels": found.labels,
            "seconds": clock.elapsed,
            "descents": [
                {
                    "head_dim": d.plan.head_dim,
                    "seed": d.plan.seed,
                    "errors": d.errors,
                    "train_errors": d.train_errors,
                    "fixed_readers": d.fixed_readers,
                    "likeness": d.likeness,
                    "breadth": d.breadth,
                    "heads": [d.plan.most_heads, d.plan.least_heads],
                }
                for d in found.descents
            ],
        }
        with file.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        verdict, obstacle = judge_training(found, clock)
        print(index, _said(verdict, obstacle), row["right"], task, flush=True)


def fit(files: list[Path]) -> None:
    """Logistic regressions of right answers on readings, one for one head and one for several."""
    rows = [json.loads(line) for file in files for line in _lines(file)]
    features: dict[bool, list[Any]] = {True: [], False: []}
    for row in rows:
        found = _transition(row)
        verdict, obstacle = judge_training(found, Clock(1.0))
        right = _is_right(verdict, row)
        print("✓" if right else "✗", _said(verdict, obstacle), row["right"], row["about"])
        if verdict is not None:
            one = verdict.heads == 1
            reading = found.reading(verdict.heads)
            features[one].append((reading.features, right))
    for one, name, start in (
        (True, "ONE_HEAD", calibration.ONE_HEAD),
        (False, "SEVERAL_HEADS", calibration.SEVERAL_HEADS),
    ):
        if features[one]:
            table, answers = (np.array(each, float) for each in zip(*features[one], strict=True))
            print(name, "=", tuple(np.round(_logistic(table, answers, np.array(start)), 2)))


def _logistic(table: np.ndarray, answers: np.ndarray, start: np.ndarray) -> np.ndarray:
    weights = start.copy()
    for _ in range(50):  # Newton's method on the penalised likelihood
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (answers - chance) - RIDGE * (weights - start)
        curve = (table.T * (chance * (1 - chance))) @ table + RIDGE * np.eye(len(weights))
        weights = weights + np.linalg.solve(curve, slope)
    return weights


def _transition(row: dict[str, Any]) -> Transition:
    descents = []
    for kept in row["descents"]:
        descent = Descent(DescentPlan(kept["seed"], kept["head_dim"], *kept["heads"]))
        for name in _TABLES:
            getattr(descent, name).update({int(h): value for h, value in kept[name].items()})
        descents.append(descent)
    return Transition(tuple(descents), MOST_HEADS, row["pooled"], row["labels"], row.get("forms"))


def _is_right(verdict: Any, row: dict[str, Any]) -> bool:
    return ("refuse" if verdict is None else str(verdict.heads)) in row["right"]


def _said(verdict: Any, obstacle: Any) -> str:
    if verdict is None:
        return f"refused: {obstacle[0][:60]}"
    return f"{verdict.heads} at {verdict.confidence:.2f}"


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doing", choices=["collect", "fit"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tasks", type=int, default=200)
    given = parser.parse_args()
    if given.doing == "collect":
        collect(given.files[0], given.seed, given.tasks)
    else:
        fit(given.files)
