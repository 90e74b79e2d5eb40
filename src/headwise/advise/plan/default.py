"""The theory's default: what can be said of an allocation before anything is measured.

That is little. A target that extracts D features needs D heads where they are extracted (head
count, theorem 2); for everything else the published recommendations contradict one another, so
the default is uniform.
"""

from headwise.advise.plan.request import PlanRequest
from headwise.allocation.fill import Layers
from headwise.allocation.plan_file import AllocationPlan
from headwise.theory.head_count import heads_needed

DEFAULT = "theory's default"
UNTRAINED = "Only theory: nothing was trained. Give --text or --data to have it measured."


def default_plan(
    request: PlanRequest, unmeasured: str = UNTRAINED, in_time: bool = True
) -> AllocationPlan:
    """Uniform layers, with at least `intrinsic_dim` heads in the first; not checked on data.

    `unmeasured` says why not; not `in_time`, there was no time to.
    """
    layers = request.schedule("uniform", request.intrinsic_dim or 1)
    reasons = _reasons(layers, request.length, request.intrinsic_dim)
    return AllocationPlan(
        width=request.width,
        length=request.length,
        layers=layers,
        budget=request.budget,
        schedule=DEFAULT,
        reasons=(*reasons, unmeasured),
        seed=request.seed,
        in_time=in_time,
    )


def _reasons(layers: Layers, length: int, intrinsic_dim: int | None) -> list[str]:
    first, widest = layers[0], max(layer.qk_dim for layer in layers)
    reasons = []
    if intrinsic_dim is not None:
        bound = heads_needed(intrinsic_dim)
        reasons.append(
            f"The first layer has {first.heads} heads: a target of {intrinsic_dim} features needs "
            f"{intrinsic_dim} or more where it extracts them ({bound.source})."
        )
    if len(layers) > 1:
        otherwise = "No" if intrinsic_dim is None else "Beyond that, no"
        reasons.append(
            f"{otherwise} layer is preferred: early-heavy (2510.03784), late-heavy (2404.14619) "
            "and many-then-one (2408.04532) are each published as best, and nothing but measuring "
            "on your data tells which applies."
        )
    if widest < length:
        reasons.append(
            f"Heads of dimension {widest} cannot make every pattern of attention over {length} "
            "tokens (the low-rank bottleneck, 2002.07028); softmax forgives much of that, and more "
            "the longer the row (see `headwise bound saturation`)."
        )
    return reasons
