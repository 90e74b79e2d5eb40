"""The trainings that a plan rests on: through a store, until a deadline.

What the store holds is not run again, so a plan that was killed goes on from there.
"""

from functools import cached_property
from math import isfinite, log
from typing import Any

from headwise.advise.plan.curves import SEEDS, TIMES, LayerCuts
from headwise.advise.plan.race import UNIFORM, Measure, Pair
from headwise.advise.plan.request import PlanRequest
from headwise.advise.plan.scale import TrialScale
from headwise.allocation.fill import Layers
from headwise.allocation.schedules import schedule
from headwise.core.progress import Deadline, OnProgress
from headwise.core.spec import spec_hash
from headwise.lab.conduct import RunsFailed, StudyState, conduct
from headwise.lab.run import Run
from headwise.lab.store import Store

_OWNER = "plan"  # for whom the store keeps these runs
CUTTING = 2 * SEEDS  # what training the decoders to cut costs, in trainings of a candidate


class Trials:
    """Runs on one task at one scale; `expected` of them are to come, for the progress bar."""

    def __init__(
        self,
        request: PlanRequest,
        task: Any,
        scale: TrialScale,
        store: Store,
        deadline: Deadline,
        expected: int,
        on_progress: OnProgress,
    ) -> None:
        self._request, self._task, self._scale, self._store = request, task, scale, store
        self._deadline, self._expected, self._on_progress = deadline, expected, on_progress
        self._parts: dict[str, list[Run]] = {}
        self._done = 0.0
        self._tier = spec_hash((task, scale.width, scale.budget, request.layers, request.seed))[:12]

    @property
    def finished(self) -> int:
        """Trainings and measurements of this plan that the store holds."""
        return len({record.key for _, record in self._store.records(_OWNER, self._tier)})

    def first_look(self, candidates: dict[str, Layers]) -> None:
        """Every candidate once, uniform first, so that early something can be compared.

        In one go with the decoders that are to be cut, so that no core waits for the last of them.
        """
        training, first = self._cuts.training_runs, self._request.seed
        names = sorted(candidates, key=lambda name: name != UNIFORM)
        runs = [*self._text_runs(candidates, [(name, first) for name in names]).values()]
        self._do("a first look", runs + training, len(runs) + CUTTING)

    def solved(self) -> Layers | None:
        """The solver's layers, from the sensitivities of a decoder of twice the budget.

        None if the time was over before they were measured.
        """
        cuts = self._cuts
        self._do("training a decoder to cut", cuts.training_runs, CUTTING)
        found = self._do("cutting its layers", cuts.cut_runs, 1)
        if len(found) < len(cuts.cut_runs):
            return None
        return cuts.solve([found[run.key]["error"] for run in cuts.cut_runs])

    @cached_property
    def _cuts(self) -> LayerCuts:
        scale, request = self._scale, self._request
        layers = schedule(
            UNIFORM,
            layers=request.layers,
            width=scale.width,
            budget=TIMES * scale.budget,
            heads=request.heads,
            multiple=scale.multiple,
        )
        shape = scale.decoder(layers, self._task.vocabulary, "learned")
        return LayerCuts(self._task, shape, scale, request.seed)

    def losses(self, candidates: dict[str, Layers]) -> Measure:
        """Held-out losses of candidates; one that diverged has that of guessing."""
        guessing = log(self._task.vocabulary)

        def measure(what: str, pairs: list[Pair]) -> dict[Pair, float]:
            runs = self._text_runs(candidates, pairs)
            found = self._do(what, list(runs.values()), len(runs))
            losses = {
                pair: found[run.key]["error"] for pair, run in runs.items() if run.key in found
            }
            return {
                pair: loss if loss is not None and isfinite(loss) else guessing
                for pair, loss in losses.items()
            }

        return measure

    def _text_runs(self, candidates: dict[str, Layers], pairs: list[Pair]) -> dict[Pair, Run]:
        return {
            (name, seed): Run(
                kind="text",
                task=self._task,
                net=self._scale.decoder(candidates[name], self._task.vocabulary),
                training=self._scale.training(),
                seed=seed,
            )
            for name, seed in pairs
        }

    def _do(self, what: str, runs: list[Run], price: float) -> dict[str, dict[str, Any]]:
        """Results by key, of all these runs or of those that were finished in time."""
        before = {run.key for part in self._parts.values() for run in part}
        price *= sum(run.key not in before for run in runs) / len(runs)
        self._parts[what] = runs

        def on_state(state: StudyState) -> None:
            done = self._done + state.fraction * price
            self._on_progress(min(1.0, done / self._expected), what)

        state = conduct(
            self._store,
            _OWNER,
            self._tier,
            self._parts,
            self._request.place,
            on_state,
            deadline=self._deadline,
            in_order=True,
        )
        if state.failed_runs:  # fewer trainings than the comparison is made for: no plan
            _, first = next(self._store.records(_OWNER, self._tier, failed=True))
            raise RunsFailed(
                f"{state.failed_runs} trainings failed, the first with: {first.result['failure']}"
            )
        self._done += price
        wanted = {run.key for run in runs}
        return {
            record.key: record.result
            for _, record in self._store.records(_OWNER, self._tier)
            if record.key in wanted
        }
