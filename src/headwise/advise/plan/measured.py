"""A plan with data: candidates are trained, the best is checked on fresh seeds.

Candidates are the named schedules and what the solver makes of the layers' sensitivities. All
trials go through a store: what it holds is not run again, and a killed plan goes on from there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, log
from pathlib import Path
from typing import Any

from headwise.advise.plan import curves as solved
from headwise.advise.plan.default import DEFAULT, default_targets
from headwise.advise.plan.explain import comparison, reasons, rows, said
from headwise.advise.plan.race import FEWER, FEWEST, FULL, UNIFORM, OutOfTime, Pair, Rungs, race
from headwise.advise.plan.scale import TrialScale, choose_scale
from headwise.allocation.fill import LayerShare, fill
from headwise.allocation.plan_file import AllocationPlan
from headwise.allocation.schedules import SCHEDULES, UniformLayers, targets
from headwise.core.errors import InputError
from headwise.core.spec import spec_hash
from headwise.lab.conduct import StudyState, conduct
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.theory.checks import positive, whole

SOLVED, HALF = "solved", "half-way to solved"


@dataclass(frozen=True)
class Request:
    """What the user has and wants."""

    layers: int
    width: int
    length: int
    budget: int
    intrinsic_dim: int | None = None
    multiple: int = 4
    seconds: float = 600.0
    seed: int = 0
    workers: int = 1
    rungs: tuple[Rungs, ...] = (FULL, FEWER, FEWEST)  # the first that the time allows


def measured_plan(
    request: Request,
    task_at: Callable[[int], Any],
    store: Path,
    on_progress: Callable[[float, str], None] = lambda fraction, doing: None,
) -> AllocationPlan:
    """Train candidates on `task_at(length)`, choose, check. What is done is kept in `store`."""
    positive("seconds", request.seconds)
    whole("length", request.length)
    grid = UniformLayers.of(request.layers, request.width, request.budget, None, request.multiple)
    candidates = {name: targets(name, grid) for name in SCHEDULES}
    fill(  # an impossible budget is found before anything is trained
        candidates[UNIFORM], width=request.width, budget=request.budget, multiple=request.multiple
    )
    if request.intrinsic_dim is not None:
        candidates[DEFAULT] = default_targets(
            grid, request.width, request.budget, request.intrinsic_dim, request.multiple
        )
    whole_task = task_at(request.length)  # a length beyond the data is found here
    scale = choose_scale(
        width=request.width,
        length=request.length,
        budget=request.budget,
        multiple=request.multiple,
        layers=request.layers,
        vocabulary=whole_task.vocabulary,
        candidates=len(candidates) + 2,
        others=2 * solved.SEEDS,
        rungs=request.rungs,
        seconds=request.seconds,
        workers=request.workers,
    )
    task = whole_task if scale.shorter == 1 else task_at(scale.length)
    with Store(store, write=True) as results:
        trials = _Trials(request, task, scale, results, on_progress)
        try:
            made = trials.solver_made(candidates[UNIFORM])
            candidates |= made
            outcome = race(list(candidates), trials.losses(candidates), scale.rungs, request.seed)
        except OutOfTime:
            raise InputError(
                f"the {request.seconds:g} seconds ran out after {trials.finished} trainings and "
                f"measurements, which are kept in {store}; the same command goes on from there"
            ) from None
    full = {
        name: fill(each, width=request.width, budget=request.budget, multiple=request.multiple)
        for name, each in candidates.items()
    }
    return AllocationPlan(
        width=request.width,
        length=request.length,
        layers=full[outcome.winner],
        budget=request.budget,
        schedule=outcome.winner,
        reasons=tuple(reasons(outcome, scale, list(candidates))),
        checked=said(outcome, scale, task.name, request),
        against_uniform=comparison(outcome),
        candidates=tuple(rows(outcome, full)),
        seed=request.seed,
    )


class _Trials:
    """Runs through the store, under one clock."""

    def __init__(
        self,
        request: Request,
        task: Any,
        scale: TrialScale,
        store: Store,
        on_progress: Callable[[float, str], None],
    ) -> None:
        self._request, self._task, self._scale, self._store = request, task, scale, store
        self._on_progress = on_progress
        self._deadline = time.monotonic() + request.seconds
        self._parts: dict[str, list[Run]] = {}
        self._tier = spec_hash((task, scale.width, scale.budget, request.layers, request.seed))[:12]
        self.finished = 0

    def solver_made(self, uniform: tuple[LayerShare, ...]) -> dict[str, tuple[LayerShare, ...]]:
        """The solver's candidates, from the sensitivities of a decoder of twice the budget."""
        scale, seed = self._scale, self._request.seed
        layers = scale.layers(uniform, solved.TIMES)
        shape = scale.decoder(layers, self._task.vocabulary, "learned")
        self._do("training a decoder to cut", solved.trained_first(self._task, shape, scale, seed))
        cuts = solved.cuts(self._task, shape, scale, seed)
        found = self._do("cutting its layers", cuts)
        increases = [float(found[run.key]["error"]) for run in cuts]
        best, _ = solved.solve(shape, scale, increases)
        return {SOLVED: best, HALF: solved.half_way(uniform, best)}

    def losses(
        self, candidates: dict[str, tuple[LayerShare, ...]]
    ) -> Callable[[str, list[Pair]], dict[Pair, float]]:
        """Held-out losses of candidates; one that diverged has that of knowing nothing."""
        training, ignorant = self._scale.training(), log(self._task.vocabulary)
        nets = {
            name: self._scale.decoder(self._scale.layers(each), self._task.vocabulary)
            for name, each in candidates.items()
        }

        def measure(what: str, pairs: list[Pair]) -> dict[Pair, float]:
            runs = {
                (name, seed): Run(
                    kind="text", task=self._task, net=nets[name], training=training, seed=seed
                )
                for name, seed in pairs
            }
            found = self._do(what, list(runs.values()))
            losses = {pair: found[run.key]["error"] for pair, run in runs.items()}
            return {
                pair: loss if loss is not None and isfinite(loss) else ignorant
                for pair, loss in losses.items()
            }

        return measure

    def _do(self, what: str, runs: list[Run]) -> dict[str, dict[str, Any]]:
        self._parts[what] = runs
        before = self.finished

        def on_state(state: StudyState) -> None:
            share = state.finished_cost / state.total_cost if state.total_cost else 1.0
            self.finished = max(before, state.finished_runs)
            self._on_progress(share, what)
            if time.monotonic() > self._deadline and state.finished_runs < state.total_runs:
                raise OutOfTime

        conduct(self._store, "plan", self._tier, self._parts, self._request.workers, on_state)
        wanted = {run.key for run in runs}
        return {
            record.key: record.result
            for _, record in self._store.records("plan", self._tier)
            if record.key in wanted
        }
