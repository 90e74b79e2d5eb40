"""Plan, apply, judge: a smaller model and the truth about it."""

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import require
from headwise.pretrained.evaluate import Evaluation, evaluate, quality
from headwise.pretrained.finetune import recover
from headwise.pretrained.measure.certificate import HeadCertificate, certify
from headwise.pretrained.measure.measurement import Measurement, measure
from headwise.pretrained.model.apply import cut_layer, replace_attention
from headwise.pretrained.model.files import record_layouts
from headwise.pretrained.plan.allocate import Budget, allocate
from headwise.pretrained.plan.baselines import baseline_plan, baseline_reductions
from headwise.pretrained.plan.from_allocation import from_allocation
from headwise.pretrained.plan.plan_file import METHODS, CompressionPlan, check_plan
from headwise.pretrained.plan.reductions import LayerReductions
from headwise.pretrained.plan.uniform import stock_model, stock_reason, uniform_plan
from headwise.pretrained.text.calibration import Material

Progress = Callable[[str, int, int], None]


def _quiet(what: str, done: int, total: int) -> None:
    pass


@dataclass
class Compressed:
    """A compressed model with its plan, its comparison with the original, and its certificates."""

    model: Any
    plan: CompressionPlan
    evaluation: Evaluation
    certificates: list[HeadCertificate]
    recovery: list[float]

    def report(self) -> dict[str, Any]:
        return {
            "method": self.plan.method,
            "budget": self.plan.budget,
            "predicted_damage": self.plan.predicted_damage,
            "evaluation": self.evaluation.to_data(),
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "recovery_loss": self.recovery,
        }


def compress(
    model: Any,
    material: Material,
    *,
    keep: float | None = None,
    cache: float | None = None,
    max_loss: float | None = None,
    plan: CompressionPlan | AllocationPlan | None = None,
    method: str = "fisher",
    uniform: bool = False,
    finetune: int = 0,
    seed: int = 0,
    measurement: Measurement | None = None,
    time_it: bool = True,
    progress: Progress = _quiet,
) -> Compressed:
    """A smaller copy of `model` (which stays as it is).

    Give one of `keep` (fraction of attention parameters), `cache` (fraction of the key–value
    cache), `plan` (of an earlier compression, or an allocation of `headwise plan`), or `max_loss`
    alone (the smallest model that loses at most that much).
    """
    require(method in METHODS, f"method {method!r} is unknown; known are {', '.join(METHODS)}")
    given = [name for name in (keep, cache, plan) if name is not None]
    require(
        len(given) == 1 or (not given and max_loss is not None),
        "say how small: one of a fraction to keep, a cache budget, a plan or a largest loss",
    )
    require(max_loss is None or max_loss >= 0, "the largest loss must not be negative")
    if measurement is None:
        measurement = measure(model, material, seed=seed, progress=progress)
    if isinstance(plan, AllocationPlan):
        plan = from_allocation(plan, measurement)
    if plan is not None:
        check_plan(plan, measurement.identity, measurement.sites)
    elif not given:
        assert max_loss is not None
        plan = _smallest(model, measurement, material, method, uniform, max_loss, progress)
    else:
        budget = Budget(keep) if keep is not None else Budget(cache or 0.0, "cache")
        plan = make_plan(measurement, budget, method, uniform)
    plan = replace(plan, calibration=material.source)
    return _finish(model, measurement, material, plan, finetune, seed, time_it, progress)


def make_plan(
    measurement: Measurement, budget: Budget, method: str = "fisher", uniform: bool = False
) -> CompressionPlan:
    """A plan by any method."""
    if method != "fisher":
        return baseline_plan(measurement, budget, method)
    return uniform_plan(measurement, budget) if uniform else allocate(measurement, budget)


def apply_plan(model: Any, measurement: Measurement, plan: CompressionPlan) -> Any:
    """A copy of the model with its attention cut to the plan."""
    check_plan(plan, measurement.identity, measurement.sites)
    smaller = copy.deepcopy(model)
    layouts = []
    reductions = reductions_of(measurement, plan.method)
    for site, layer, shape in zip(measurement.sites, reductions, plan.layers, strict=True):
        cut = cut_layer(site, layer, shape)
        replace_attention(smaller, site, cut)
        layouts.append(cut.layout)
    record_layouts(smaller, layouts)
    return smaller


def reductions_of(measurement: Measurement, method: str) -> list[LayerReductions]:
    if method == "fisher":
        return measurement.reductions
    return baseline_reductions(measurement, method)


def _finish(
    model: Any,
    measurement: Measurement,
    material: Material,
    plan: CompressionPlan,
    finetune: int,
    seed: int,
    time_it: bool,
    progress: Progress,
) -> Compressed:
    uniform = plan.budget is not None and plan.budget.get("uniform")
    stock = uniform and stock_reason(measurement.identity["model_type"]) is None
    smaller = (stock_model if stock else apply_plan)(model, measurement, plan)
    sites, objective = measurement.sites, measurement.objective
    certificates = certify(
        model, sites, reductions_of(measurement, plan.method), plan.layers, material.calibration
    )
    recovery = []
    if finetune:
        calibration = material.calibration
        recovery = recover(
            smaller, model, sites, objective, calibration, finetune, seed=seed, progress=progress
        )
        certificates = []  # they speak of the weights before the recovery
    progress("judging on held-out data", 0, 1)
    judged = evaluate(model, smaller, sites, plan, objective, material.held_out, time_it=time_it)
    progress("judging on held-out data", 1, 1)
    return Compressed(smaller, plan, judged, certificates, recovery)


def _smallest(
    model: Any,
    measurement: Measurement,
    material: Material,
    method: str,
    uniform: bool,
    max_loss: float,
    progress: Progress,
) -> CompressionPlan:
    """Bisect the fraction kept; judged on every other held-out batch, so that the final verdict
    also rests on others."""
    batches = material.held_out[::2]
    low, high = 0.05, 1.0
    best = make_plan(measurement, Budget(1.0), method, uniform)
    steps = 7
    for step in range(steps):
        middle = (low + high) / 2
        plan = make_plan(measurement, Budget(middle), method, uniform)
        smaller = apply_plan(model, measurement, plan)
        damage, _ = quality(model, smaller, measurement.objective, batches)
        if damage <= max_loss:
            best, high = plan, middle
        else:
            low = middle
        progress("searching for the smallest model", step + 1, steps)
    return best
