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
from headwise.lab.kinds.cut_layer import Reduced
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
    net, training = Reduced(shape=shape), scale.training()
    return [Run(task=task, net=net, training=training, seed=seed) for seed in seeds]


def cuts(task: object, shape: DecoderShape, scale: TrialScale, first_seed: int) -> list[Run]:
    """A run for every layer, way, share and seed."""
    return [
        Run(task=task, net=net, training=scale.training(), seed=seed)
        for net in _nets(shape)
        for seed in range(first_seed, first_seed + SEEDS)
    ]


def solve(
    shape: DecoderShape, scale: TrialScale, increases: Sequence[float]
) -> tuple[tuple[LayerShare, ...], tuple[LayerCurve, ...]]:
    """The targets of the best allocation by these increases, in the order of `cuts`."""
    nets = _nets(shape)
    mean = np.reshape(increases, (len(nets), SEEDS)).mean(1)
    curves = []
    for index, layer in enumerate(shape.layers):
        losses: dict[Shape, float] = {_shape(layer): 0.0}
        for net, increase in zip(nets, mean, strict=True):
            if net.layer == index:
                losses[_shape(net.kept)] = float(increase)
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


def _nets(shape: DecoderShape) -> list[Reduced]:
    """Every cut that changes a layer, once."""
    nets: dict[tuple[int, Shape], Reduced] = {}
    for index, layer in enumerate(shape.layers):
        for keep in KEPT:
            for way in ("dimension", "count"):
                net = Reduced(shape=shape, layer=index, way=way, keep=keep)
                if _shape(net.kept) != _shape(layer):
                    nets.setdefault((index, _shape(net.kept)), net)
    return list(nets.values())


def _shape(layer: AttentionShape) -> Shape:
    return layer.heads, layer.qk_dim, layer.v_dim
