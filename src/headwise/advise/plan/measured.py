"""A plan with data: candidates are trained, the best is checked on fresh seeds.

Candidates are the named schedules and what the solver makes of the layers' sensitivities. All
trials go through a store: what it holds is not run again, and a killed plan goes on from there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.advise.plan.candidates import candidates
from headwise.advise.plan.default import default_plan
from headwise.advise.plan.explain import comparison, reasons, rows, said
from headwise.advise.plan.race import UNIFORM, race
from headwise.advise.plan.request import PlanRequest
from headwise.advise.plan.scale import choose_scale
from headwise.advise.plan.trials import CUTTING, Trials
from headwise.allocation.plan_file import AllocationPlan
from headwise.core.progress import Deadline, OnProgress, quiet
from headwise.lab.crew import keeping_workers
from headwise.lab.store import Store

SOLVERS = 2  # candidates that the solver makes


def measured_plan(
    request: PlanRequest,
    task_at: Callable[[int], Any],
    store: Path,
    on_progress: OnProgress = quiet,
) -> AllocationPlan:
    """Train candidates on `task_at(length)`, choose, check. What is done is kept in `store`.

    When the time is over, what is known by then decides; where nothing is, the plan is the
    theory's default and says so.
    """
    whole_task = task_at(request.length)  # a length beyond the data is found here
    contestants = len(candidates(request, request, None)) + SOLVERS
    scale = choose_scale(
        request, vocabulary=whole_task.vocabulary, candidates=contestants, others=CUTTING
    )
    task = whole_task if scale.shorter == 1 else task_at(scale.length)
    expected = CUTTING + 1 + scale.rungs.runs(contestants)
    with Store(store, write=True) as results, keeping_workers():
        deadline = Deadline.after(request.seconds)
        trials = Trials(request, task, scale, results, deadline, expected, on_progress)
        trials.first_look(candidates(request, scale, None))
        solved = trials.solved()
        racing = candidates(request, scale, solved)
        outcome = race(list(racing), trials.losses(racing), scale.rungs, request.seed)
        finished = trials.finished
    in_time = outcome.in_time and solved is not None
    goes_on = (
        f"The {request.seconds:g} seconds ran out after {finished} trainings and measurements, "
        f"which are kept in {store}; the same command goes on from there. All of them take about "
        f"{scale.whole_seconds:,.0f} seconds on {request.workers} cores of usual speed."
    )
    if not outcome.seeds(UNIFORM):
        return default_plan(request, f"Unmeasured: nothing could be compared yet. {goes_on}", False)
    full = candidates(request, request, solved)
    why = reasons(outcome, scale, list(full))
    return AllocationPlan(
        width=request.width,
        length=request.length,
        layers=full[outcome.winner],
        budget=request.budget,
        schedule=outcome.winner,
        reasons=tuple(why if in_time else [*why, goes_on]),
        checked=said(outcome, scale, task.name, request.layers),
        against_uniform=comparison(outcome),
        candidates=rows(outcome, full),
        seed=request.seed,
        in_time=in_time,
    )
