"""Which heads and dimensions in which layer: curves of (shape, loss) and a budget, solved."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.core.errors import InputError, require
from headwise.core.shown import Printed
from headwise.theory.allocation.costs import cost_function
from headwise.theory.allocation.knapsack import Item, choose
from headwise.theory.checks import number, numbers, sequence, shown, whole

Shape = tuple[int, int, int]
"""heads, qk_dim, v_dim."""


@dataclass(frozen=True)
class LayerCurve:
    """What a layer may be, and the loss of each: measured, or from a model of it."""

    shapes: tuple[Shape, ...]
    losses: tuple[float, ...]

    def __post_init__(self) -> None:
        shapes = sequence("shapes", self.shapes, tuple, "shapes (heads, qk_dim, v_dim)")
        losses = numbers("losses", self.losses)
        require(
            len(shapes) == len(losses) >= 1,
            "a layer's curve has a loss for every shape, and at least one shape",
        )
        for shape in shapes:
            require(len(shape) == 3, f"a shape is (heads, qk_dim, v_dim), not {shown(shape)}")
            for name, value in zip(("heads", "qk_dim", "v_dim"), shape, strict=True):
                whole(f"{name} of a shape", value)


@dataclass(frozen=True, kw_only=True)
class Allocation(Printed):
    """A shape for every layer. No allocation within the budget loses less than `loss - gap`."""

    layers: tuple[Shape, ...]
    cost: int
    budget: float
    counts: str
    loss: float
    gap: float

    def __str__(self) -> str:
        shapes = ", ".join(f"{h}×({q}, {v})" for h, q, v in self.layers)
        sure = "exact" if self.gap == 0 else f"within {self.gap:.3g} of the best"
        return (
            f"heads×(qk_dim, v_dim) by layer: {shapes}\n"
            f"  {self.cost:,} of {self.budget:,.0f} {self.counts}; loss {self.loss:.6g}, {sure}"
        )


def allocate(
    curves: Sequence[LayerCurve],
    budget: float,
    *,
    width: int,
    counts: str = "parameters",
    length: int | None = None,
    multiple: int = 1,
    exact: bool = True,
) -> Allocation:
    """The shapes of least total loss within the budget of "parameters", "cache" or "flops".

    `multiple` admits only head dimensions that hardware likes, such as multiples of 4, 8 or 16:
    they are left out before solving, so that nothing is lost by rounding afterwards.
    """
    curves = sequence("curves", curves, LayerCurve, "layer curves")
    budget = number("budget", budget)
    cost_of = cost_function(counts, width, length)
    multiple = whole("multiple", multiple)
    items, admitted = [], []
    for index, curve in enumerate(curves):
        rows = [
            (shape, loss)
            for shape, loss in zip(curve.shapes, curve.losses, strict=True)
            if shape[1] % multiple == 0 and shape[2] % multiple == 0
        ]
        require(
            bool(rows), f"layer {index} has no shape whose dimensions are multiples of {multiple}"
        )
        costs = np.array([cost_of(*shape) for shape, _ in rows], dtype=float)
        items.append(Item(costs, np.array([loss for _, loss in rows], dtype=float)))
        admitted.append([shape for shape, _ in rows])
    try:
        found = choose(items, budget, exact=exact)
    except InputError as error:
        raise InputError(f"{error} ({counts} of all {len(items)} attention layers)") from error
    return Allocation(
        layers=tuple(shapes[o] for shapes, o in zip(admitted, found.options, strict=True)),
        cost=int(found.cost),
        budget=budget,
        counts=counts,
        loss=found.loss,
        gap=found.gap,
    )
