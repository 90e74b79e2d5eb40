"""How small a model shall become: what a user may ask for, checked before a model is opened."""

from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import require
from headwise.pretrained.adapters import attention_sites, read_weights
from headwise.pretrained.measure.curves import LayerCurves
from headwise.pretrained.measure.measurement import Measurement, identity
from headwise.pretrained.model.mode import number_bytes
from headwise.pretrained.plan.allocate import Budget, total
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.from_allocation import from_allocation
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.plan.plan_file import METHODS, CompressionPlan, check_plan, read_plan
from headwise.pretrained.plan.reductions import LayerReductions
from headwise.pretrained.plan.uniform import check_uniform

_BY_SIZE = ("svd-llm", "modegpt", "uniform-svd")  # their shapes follow from the share alone
_STANDARD, _LOW, _HALF = 0.75, 0.3, 0.5  # shares at which cuts are tried; low for less than half
_NEAR, _NEAR_IN_WHOLE_HEADS = 0.8, 0.4  # of the share asked for: what is not far from it


@dataclass(frozen=True, kw_only=True)
class Goal:
    """One of: a fraction of the attention's parameters, bytes of cache a token, a plan, or (all
    three None) the smallest model within `max_loss`."""

    keep: float | None = None
    kv_bytes: int | None = None
    plan: CompressionPlan | AllocationPlan | None = None
    max_loss: float | None = None
    method: str = "fisher"
    uniform: bool = False
    fast: bool = False

    def __post_init__(self) -> None:
        known = ", ".join(METHODS)
        require(self.method in METHODS, f"method {self.method!r} is unknown; known are {known}")
        given = [part for part in (self.keep, self.kv_bytes, self.plan) if part is not None]
        require(
            len(given) == 1 or (not given and self.max_loss is not None),
            "say how small: one of keep (a fraction of the attention's parameters), kv_bytes "
            "(bytes of cache a token), a plan, or max_loss alone (the largest loss)",
        )
        if self.keep is not None:
            Budget(self.keep)
        require(
            self.kv_bytes is None or self.kv_bytes > 0,
            f"kv_bytes is {self.kv_bytes}; a token's cache has some bytes",
        )
        require(
            self.max_loss is None or 0 <= self.max_loss < inf,
            f"max_loss is {self.max_loss}; the largest loss must not be negative, nor infinite",
        )
        require(
            not self.uniform or (self.method == "fisher" and self.plan is None),
            "uniform goes with the method fisher and without a plan, which has its own shapes",
        )
        require(
            not self.fast or (self.method == "fisher" and self.plan is None and not self.uniform),
            "fast goes with the method fisher, without uniform (which is as fast) and without a "
            "plan, which has its own shapes",
        )

    @property
    def searches(self) -> bool:
        """Whether the size itself is to be found."""
        return self.keep is None and self.kv_bytes is None and self.plan is None

    @property
    def cuts_by_curves(self) -> bool:
        """Whether the plan follows from what cuts are said to cost."""
        return self.method == "fisher" and self.plan is None and self.keep != 1

    def standard_plan(self, model: Any, measurement: Measurement) -> CompressionPlan:
        """A plan of this kind at the size at which cuts are tried."""
        asked = Budget(_STANDARD) if self.searches else self._budget(model, measurement)
        share = _LOW if asked.fraction < _HALF else _STANDARD
        budget = Budget(share, asked.counts)
        return make_plan(measurement, budget, self.method, self.uniform, self.fast)

    def plan_for(self, model: Any, measurement: Measurement) -> CompressionPlan:
        """The plan that reaches the goal; not for a goal that searches."""
        if isinstance(self.plan, AllocationPlan):
            return from_allocation(self.plan, measurement)
        if self.plan is not None:
            return self.plan
        budget = self._budget(model, measurement)
        return make_plan(measurement, budget, self.method, self.uniform, self.fast)

    def plan_after(
        self, model: Any, tried: Measurement, untried: Measurement
    ) -> tuple[Measurement, CompressionPlan]:
        """The plan by what trying cuts showed, and what it is made from.

        Of a model with few sizes, what the standard one shows may mislead at another: a plan that
        misses its share is made without it.
        """
        plan = self.plan_for(model, tried)
        if tried is untried or keeps_its_share(plan, tried):
            return tried, plan
        return untried, self.plan_for(model, untried)

    def _budget(self, model: Any, measurement: Measurement) -> Budget:
        if self.keep is not None:
            return Budget(self.keep)
        assert self.kv_bytes is not None
        return Budget(cache_fraction(model, measurement, self.kv_bytes), "cache")

    def missed(self, plan: CompressionPlan, measurement: Measurement) -> list[str]:
        """A warning where a plan keeps less than was asked for, because it may have few sizes."""
        share = _share(plan, measurement)
        given = self.plan is not None or self.searches
        if given or share is None or share.kept >= _NEAR * share.asked:
            return []
        if self.uniform:
            return [f"{share}: one shape for all layers allows nothing nearer"]
        if self.fast:
            return [f"{share}: one head size a layer allows nothing nearer"]
        return [f"{share}: what {self.method} removes at a time allows nothing nearer"]


def check_reachable(goal: Goal, model: Any) -> None:
    """Refuse, before anything is measured, a size or a plan that the model cannot have.

    What a shape costs does not depend on what is measured, so a plan is made as if no cut lost
    anything; heads that are removed by a score are as many whichever they are.
    """
    if goal.uniform:
        check_uniform(model.config.model_type, attention_sites(model))
    if goal.searches:
        return
    if goal.method in ("taylor", "prune-heads"):
        goal = replace(goal, method="random")
    blank = _unmeasured(model)
    plan = goal.plan_for(model, blank)
    check_plan(plan, blank.identity, blank.sites)
    if goal.plan is None and goal.method in _BY_SIZE:
        check_share(plan, blank)


def check_share(plan: CompressionPlan, measurement: Measurement) -> None:
    """Refuse a plan that keeps much less than was asked for, or more: it answers no question."""
    require(
        keeps_its_share(plan, measurement),
        f"{_share(plan, measurement)}: what was measured found no use in the rest, or the model is "
        "too small for such a share; nothing is written",
    )


def keeps_its_share(plan: CompressionPlan, measurement: Measurement) -> bool:
    """Whether the plan keeps about what was asked for; so does one of no share."""
    share = _share(plan, measurement)
    if share is None:
        return True
    coarse = plan.method != "fisher" or share.uniform or share.fast
    least = share.asked * (_NEAR_IN_WHOLE_HEADS if coarse else _NEAR)
    return least <= share.kept <= share.asked * 1.02 + 0.005


@dataclass(frozen=True)
class _Share:
    """Fractions of the attention's parameters or cache."""

    asked: float
    kept: float
    counts: str
    uniform: bool
    fast: bool

    def __str__(self) -> str:
        return (
            f"{100 * self.asked:.1f} % of the attention's {self.counts} were asked for and the "
            f"plan keeps {100 * self.kept:.1f} %"
        )


def _share(plan: CompressionPlan, measurement: Measurement) -> _Share | None:
    """None for a plan of no share."""
    budget = plan.budget
    if budget is None or "fraction" not in budget:
        return None
    asked, counts = float(budget["fraction"]), str(budget["counts"])
    parts = zip(measurement.sites, plan.layers, measurement.reductions, strict=True)
    cost = sum(shape_cost(site, shape, layer.weights, counts) for site, shape, layer in parts)
    kept = cost / total(measurement, counts)
    return _Share(asked, kept, counts, bool(budget.get("uniform")), bool(budget.get("fast")))


def _unmeasured(model: Any) -> Measurement:
    """The model's shapes and weights, and curves without a loss."""
    sites, reductions, curves = attention_sites(model), [], []
    nothing: dict[str, Any] = {field.name: None for field in fields(LayerReductions)}
    for site in sites:
        reductions.append(LayerReductions(**nothing | {"weights": read_weights(model, site)}))
        by_group = [np.zeros(site.head_dim + 1)] * site.kv_heads
        rows = [min(site.hidden, n * site.head_dim) + 1 for n in (site.heads, site.kv_heads)]
        curves.append(LayerCurves(by_group, by_group, *map(np.zeros, [*rows, site.heads])))
    unknown: Any = None
    return Measurement(sites, reductions, curves, unknown, identity(model, sites), 0, 0)


def opened_plan(
    plan: str | Path | CompressionPlan | AllocationPlan | None,
) -> CompressionPlan | AllocationPlan | None:
    """A plan as it is, or from its file."""
    return read_plan(Path(plan)) if isinstance(plan, str | Path) else plan


def cache_fraction(model: Any, measurement: Measurement, kv_bytes: int) -> float:
    """Bytes of cache a token, as a fraction of what the model uses."""
    require(measurement.sites[0].causal, "an encoder has no key–value cache; use keep")
    whole = number_bytes(model) * total(measurement, "cache")
    require(kv_bytes <= whole, f"kv_bytes is {kv_bytes}; this model uses {whole:,} bytes a token")
    return float(kv_bytes / whole)
