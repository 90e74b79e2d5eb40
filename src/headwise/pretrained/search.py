"""The smallest model that loses no more than allowed, by bisection."""

from typing import Any

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained._evaluate import quality
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.goal import Goal
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.text.calibration import Material, Sample

_STEPS = 7


def smallest_plan(
    model: Any,
    measurement: Measurement,
    material: Material,
    goal: Goal,
    on_progress: OnProgress = quiet,
) -> CompressionPlan:
    """Bisect the fraction kept, judged on every other held-out batch, which is quick; then take the
    smallest that also passes on all of them, as the final verdict will ask."""
    assert goal.max_loss is not None
    limit = goal.max_loss

    def passes(plan: CompressionPlan, sample: Sample) -> bool:
        smaller = apply_plan(model, measurement, plan)
        return quality(model, smaller, measurement.objective, sample).damage <= limit

    some = Sample(material.held_out[::2], "", material.documents[::2])
    low, high = 0.05, 1.0
    passing = [make_plan(measurement, Budget(1.0), goal.method, goal.uniform, goal.fast)]
    for step in range(_STEPS):
        middle = (low + high) / 2
        plan = make_plan(measurement, Budget(middle), goal.method, goal.uniform, goal.fast)
        if passes(plan, some):
            passing.append(plan)
            high = middle
        else:
            low = middle
        on_progress((step + 1) / _STEPS, "searching for the smallest model")
    while len(passing) > 1 and not passes(passing[-1], material.samples[0]):
        passing.pop()  # the next larger one
    return passing[-1]
