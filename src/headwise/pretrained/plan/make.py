"""A plan by any method, and how that method reduces heads."""

from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import Budget, allocate
from headwise.pretrained.plan.baselines import baseline_plan, baseline_reductions
from headwise.pretrained.plan.fast import fast_plan
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.reductions import LayerReductions
from headwise.pretrained.plan.uniform import uniform_plan


def make_plan(
    measurement: Measurement,
    budget: Budget,
    method: str = "fisher",
    uniform: bool = False,
    fast: bool = False,
) -> CompressionPlan:
    """A plan by any method; `uniform` and `fast` go with fisher."""
    if method != "fisher":
        return baseline_plan(measurement, budget, method)
    if fast:
        return fast_plan(measurement, budget)
    return uniform_plan(measurement, budget) if uniform else allocate(measurement, budget)


def reductions_of(measurement: Measurement, method: str) -> list[LayerReductions]:
    """Every layer's reductions, as the method makes them."""
    if method == "fisher":
        return measurement.reductions
    return baseline_reductions(measurement, method)
