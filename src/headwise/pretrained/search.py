"""The smallest model that loses no more than allowed, by bisection.

Of many sizes the smallest that passes is one whose text was kind to it, and other text will be less
so. Therefore the upper end of the damage's interval has to pass, not the damage.
"""

from collections.abc import Callable
from typing import Any

from headwise.core.errors import InputError
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained._evaluate import document_count, quality
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.goal import Goal
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.text.calibration import Material, Sample
from headwise.pretrained.verdict.gate import answer
from headwise.pretrained.verdict.said import Said

_STEPS, _MORE_STEPS = 7, 5


def smallest_plan(
    model: Any,
    measurement: Measurement,
    material: Material,
    goal: Goal,
    on_progress: OnProgress = quiet,
) -> CompressionPlan:
    """Bisect the fraction kept, judged on every other held-out batch, which is quick; if what is
    found does not pass on all of them, as the final verdict will ask, go on from there on all."""
    assert goal.max_loss is not None
    limit = goal.max_loss
    done = 0

    def at(share: float) -> CompressionPlan:
        return make_plan(measurement, Budget(share), goal.method, goal.uniform, goal.fast)

    def passes(share: float, sample: Sample, said: Said) -> bool:
        nonlocal done
        done += 1
        try:
            smaller = apply_plan(model, measurement, at(share))
        except InputError:  # less than the least that the model can keep
            return False
        on_progress(done / (_STEPS + 1 + _MORE_STEPS), "searching for the smallest model")
        verdict = quality(model, smaller, measurement.objective, sample, known=said)
        return answer(verdict, limit) == "within"

    every = material.samples[0]
    some = Sample(every.batches[::2], "", every.documents[::2])
    if document_count(some) < 2:  # which have no interval
        some = every
    of_some, of_every = (
        Said(model, measurement.sites, measurement.objective, sample.batches, cache=False)
        for sample in (some, every)
    )
    share = _smallest_share(lambda share: passes(share, some, of_some), 0.05, _STEPS)
    if share < 1 and not passes(share, every, of_every):
        share = _smallest_share(lambda share: passes(share, every, of_every), share, _MORE_STEPS)
    on_progress(1.0, "searching for the smallest model")
    return at(share)


def _smallest_share(passes: Callable[[float], bool], low: float, steps: int) -> float:
    """Between `low`, which may fail, and 1, which is allowed whatever it loses."""
    high = 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        if passes(middle):
            high = middle
        else:
            low = middle
    return high
