"""The allocations that race: the named schedules, the theory's default, and the solver's two.

All at equal attention parameters, and all at any scale: the trials' or the plan's own.
"""

from headwise.advise.plan.default import DEFAULT
from headwise.advise.plan.race import UNIFORM
from headwise.advise.plan.request import PlanRequest
from headwise.advise.plan.scale import TrialScale
from headwise.allocation.fill import Layers, between, fitted
from headwise.allocation.schedules import SCHEDULES, schedule

SOLVED, HALF = "solved", "half-way to solved"


def candidates(
    request: PlanRequest, size: PlanRequest | TrialScale, solved: Layers | None
) -> dict[str, Layers]:
    """All allocations at this size, by name; heads are as many as in the plan's own.

    `solved` is what the solver found, at whatever size it did; None where it found nothing.
    """
    width, budget, multiple = size.width, size.budget, size.multiple

    def scheduled(name: str, first_heads: int = 1) -> Layers:
        return schedule(
            name,
            layers=request.layers,
            width=width,
            budget=budget,
            heads=request.heads,
            first_heads=first_heads,
            multiple=multiple,
        )

    made = {name: scheduled(name) for name in SCHEDULES}
    if request.intrinsic_dim is not None:
        made[DEFAULT] = scheduled(UNIFORM, request.intrinsic_dim)
    if solved is not None:
        made[SOLVED] = fitted(solved, width=width, budget=budget, multiple=multiple)
        made[HALF] = between(made[UNIFORM], solved, width=width, budget=budget, multiple=multiple)
    return made
