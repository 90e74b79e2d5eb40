"""A candidate made by the solver: what each layer loses if it is cut, and the budget.

A decoder of twice the budget is trained; then one layer at a time is cut to several shares of its
parameters, by narrower heads or by fewer. These curves are a layer's sensitivities, the knapsack
shares the budget out by them. Cutting after training is not training at that size, so the result
is a candidate like any other.
"""

from collections.abc import Callable, Sequence

import numpy as np

from headwise.advise.plan.scale import TrialScale
from headwise.allocation.fill import LayerShare
from headwise.lab.kinds.cut_layer import Cut
from headwise.lab.run import Run
from headwise.nets import AttentionShape, DecoderShape
from headwise.theory.allocation import LayerCurve, Shape, allocate

TIMES = 2  # the trained decoder has so many times the budget
KEPT = (0.125, 0.25, 0.375, 0.5, 0.75)
SEEDS = 2

Increases = Callable[[list[Run]], list[float]]
"""Do these runs; of each, the increase of the held-out loss."""


def trained_first(
    task: object, shape: DecoderShape, scale: TrialScale, first_seed: int
) -> list[Run]:
    """The runs that only train: everything after them is cheap."""
    seeds = range(first_seed, first_seed + SEEDS)
    return [_run(task, shape, scale, Cut(), seed) for seed in seeds]


def cuts(task: object, shape: DecoderShape, scale: TrialScale, first_seed: int) -> list[Run]:
    """A run for every layer, way, share and seed."""
    return [
        _run(task, shape, scale, cut, seed)
        for cut in _cuts(shape)
        for seed in range(first_seed, first_seed + SEEDS)
    ]


def _run(task: object, shape: DecoderShape, scale: TrialScale, cut: Cut, seed: int) -> Run:
    training = scale.training()
    return Run(kind="cut-layer", task=task, net=shape, training=training, measure=cut, seed=seed)


def solve(
    shape: DecoderShape, scale: TrialScale, increases: Sequence[float]
) -> tuple[tuple[LayerShare, ...], tuple[LayerCurve, ...]]:
    """The targets of the best allocation by these increases, in the order of `cuts`."""
    tried = _cuts(shape)
    mean = np.reshape(increases, (len(tried), SEEDS)).mean(1)
    curves = []
    for index, layer in enumerate(shape.layers):
        losses: dict[Shape, float] = {_shape(layer): 0.0}
        for cut, increase in zip(tried, mean, strict=True):
            if cut.layer == index:
                losses[_shape(cut.kept(shape))] = float(increase)
        curves.append(LayerCurve(tuple(losses), tuple(losses.values())))
    found = allocate(curves, scale.budget, width=scale.width)
    targets = tuple(
        LayerShare(share=float(h * (q + v)), heads=float(h)) for h, q, v in found.layers
    )
    return targets, tuple(curves)


def half_way(first: Sequence[LayerShare], second: Sequence[LayerShare]) -> tuple[LayerShare, ...]:
    """Shares and heads between two, in the geometric mean; shares are compared as fractions."""
    totals = [sum(target.share for target in each) for each in (first, second)]
    return tuple(
        LayerShare(
            share=float(np.sqrt(a.share / totals[0] * b.share / totals[1])),
            heads=float(np.sqrt(a.heads * b.heads)),
        )
        for a, b in zip(first, second, strict=True)
    )


def _cuts(shape: DecoderShape) -> list[Cut]:
    """Every cut that changes a layer, once."""
    found: dict[tuple[int, Shape], Cut] = {}
    for index, layer in enumerate(shape.layers):
        for keep in KEPT:
            for way in ("dimension", "count"):
                cut = Cut(layer=index, way=way, keep=keep)
                kept = _shape(cut.kept(shape))
                if kept != _shape(layer):
                    found.setdefault((index, kept), cut)
    return list(found.values())


def _shape(layer: AttentionShape) -> Shape:
    return layer.heads, layer.qk_dim, layer.v_dim
