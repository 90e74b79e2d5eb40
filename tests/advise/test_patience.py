"""Heads that are close are trained on: nothing is lost, and nothing depends on interruptions."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.patience import persevere
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.walk import Descent, DescentPlan, descend
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.samples.prepare import Prepared, prepare

PLAN = DescentPlan(seed=0, head_dim=2, most_heads=2, wide_steps=300, tuning_steps=100)
PATIENT = replace(PLAN, seed=6, most_heads=1, least_heads=1)


def _data() -> Prepared:
    inputs = np.random.default_rng(0).standard_normal((1500, 8, 2))
    return prepare(Samples.of(inputs, inputs[..., 0].max(1), None, None), 0, positions=False)


def _persevered(data: Prepared, before: Descent, file: Path | None) -> Descent:
    clock, state = Clock(600.0), DescentFile(file, "a task")
    (found,) = persevere(data, [before], PATIENT, 0.0, 3e-4, clock, state)
    return found


def test_a_head_that_is_trained_on_becomes_better_and_is_kept(tmp_path: Path) -> None:
    data, file = _data(), tmp_path / "state.json"
    before = descend(data, PLAN, Clock(600.0))
    found = _persevered(data, before, file)
    assert found.errors[1] < before.errors[1]
    forgotten = replace(before, networks={})  # as a state gives it: errors without networks
    assert _persevered(data, forgotten, file).errors == found.errors
    assert _persevered(data, forgotten, None).errors == found.errors


def test_what_is_not_learnt_by_all_heads_is_not_taken_apart() -> None:
    data = _data()
    plan = replace(PLAN, wide_steps=20, give_up=1e-3)
    assert list(descend(data, plan, Clock(600.0)).errors) == [2]
    assert sorted(descend(data, replace(plan, give_up=1.0), Clock(600.0)).errors) == [1, 2]
