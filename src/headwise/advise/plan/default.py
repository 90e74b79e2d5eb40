"""The theory's default: what can be said of an allocation before anything is measured.

That is little. A target that extracts D features needs D heads where they are extracted (head
count, theorem 2); for everything else the published recommendations contradict one another, so
the default is uniform.
"""

from headwise.allocation.fill import LayerShare, fill
from headwise.allocation.plan_file import AllocationPlan
from headwise.allocation.schedules import UniformLayers, targets
from headwise.core.errors import require
from headwise.nets import AttentionShape
from headwise.theory.allocation import parameters
from headwise.theory.checks import whole
from headwise.theory.head_count import heads_needed

DEFAULT = "theory's default"


def default_plan(
    *,
    layers: int,
    width: int,
    length: int,
    budget: int,
    intrinsic_dim: int | None = None,
    head_dim: int | None = None,
    multiple: int = 4,
) -> AllocationPlan:
    """Uniform layers, with at least `intrinsic_dim` heads in the first; not checked on data."""
    length = whole("length", length)
    grid = UniformLayers.of(layers, width, budget, head_dim, multiple)
    wished = default_targets(grid, width, budget, intrinsic_dim, multiple)
    shapes = fill(wished, width=width, budget=budget, multiple=multiple)
    return AllocationPlan(
        width=width,
        length=length,
        layers=shapes,
        budget=budget,
        schedule=DEFAULT,
        reasons=(*_reasons(shapes, length, intrinsic_dim),),
    )


def default_targets(
    grid: UniformLayers, width: int, budget: int, intrinsic_dim: int | None, multiple: int
) -> tuple[LayerShare, ...]:
    """What every layer shall have by theory alone."""
    wished = list(targets("uniform", grid))
    if intrinsic_dim is None:
        return tuple(wished)
    needed = whole("intrinsic_dim", intrinsic_dim)
    least = parameters(width, needed + grid.layers - 1, multiple, multiple)
    require(
        budget >= least,
        f"{needed} heads of dimension {multiple} in the first of {grid.layers} layers take "
        f"{least:,} attention parameters; the budget is {budget:,}",
    )
    smallest = (needed * multiple + 1) / grid.share  # in units of the uniform share
    if smallest > 1:  # the others give some of theirs
        rest = (grid.layers - smallest) / max(1, grid.layers - 1)
        wished = [LayerShare(share=max(rest, 1e-9), heads=target.heads) for target in wished]
    wished[0] = LayerShare(share=max(1.0, smallest), heads=max(needed, grid.heads))
    return tuple(wished)


def _reasons(
    shapes: tuple[AttentionShape, ...], length: int, intrinsic_dim: int | None
) -> list[str]:
    first, widest = shapes[0], max(shape.qk_dim for shape in shapes)
    reasons = []
    if intrinsic_dim is not None:
        bound = heads_needed(intrinsic_dim)
        reasons.append(
            f"The first layer has {first.heads} heads: a target of {intrinsic_dim} features needs "
            f"as many heads where it extracts them ({bound.source})."
        )
    alike = "All layers" if intrinsic_dim is None else "All other layers"
    reasons.append(
        f"{alike} are alike: early-heavy (2510.03784), late-heavy (2404.14619) and "
        "many-then-one (2408.04532) are each published as best, and nothing but measuring on your "
        "data tells which applies."
    )
    if widest < length:
        reasons.append(
            f"Heads of dimension {widest} cannot make every pattern of attention over {length} "
            "tokens (the low-rank bottleneck, 2002.07028); softmax forgives much of that, and more "
            "the longer the row (see `headwise bound saturation`)."
        )
    reasons.append("Only theory: nothing was trained. Give --text or --data to have it measured.")
    return reasons
