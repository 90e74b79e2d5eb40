"""A candidate made by the solver: what each layer loses if it is cut, and the budget.

A decoder of twice the budget is trained; then one layer at a time is cut to several shares of its
parameters, by narrower heads or by fewer. These curves are a layer's sensitivities, the knapsack
shares the budget out by them. Cutting after training is not training at that size, so the result
is a candidate like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from headwise.advise.plan.scale import TrialScale
from headwise.allocation.fill import Layers, attention_parameters
from headwise.lab.kinds.cut_layer import Cut, Way
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.nets.shape import AttentionShape
from headwise.theory.allocation import Item, choose

TIMES = 2  # the trained decoder has so many times the budget
KEPT = (0.125, 0.25, 0.375, 0.5, 0.75)
WAYS: tuple[Way, ...] = ("dimension", "count")
SEEDS = 2


@dataclass(frozen=True)
class LayerCuts:
    """The runs that measure a trained decoder's layers, and what is made of their results."""

    task: Any
    shape: DecoderShape
    scale: TrialScale
    first_seed: int

    @property
    def training_runs(self) -> list[Run]:
        """The runs that only train: everything after them is cheap."""
        return [self._run(Cut(), seed) for seed in self._seeds]

    @property
    def cut_runs(self) -> list[Run]:
        """A run for every layer, way, share and seed."""
        return [self._run(cut, seed) for cut in self._cuts() for seed in self._seeds]

    def solve(self, increases: Sequence[float]) -> Layers:
        """The best layers within the budget, by the increases of the loss in `cut_runs`' order."""
        cuts = self._cuts()
        mean = np.reshape(increases, (len(cuts), SEEDS)).mean(1)
        options, items = [], []
        for index, layer in enumerate(self.shape.layers):
            losses: dict[AttentionShape, float] = {layer: 0.0}
            for cut, increase in zip(cuts, mean, strict=True):
                if cut.layer == index:
                    losses[cut.kept(self.shape)] = float(increase)
            costs = [attention_parameters(self.scale.width, (each,)) for each in losses]
            options.append(list(losses))
            items.append(Item(np.array(costs, float), np.array(list(losses.values()))))
        found = choose(items, self.scale.budget)
        return tuple(each[option] for each, option in zip(options, found.options, strict=True))

    @property
    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + SEEDS)

    def _run(self, cut: Cut, seed: int) -> Run:
        return Run(
            kind="cut-layer",
            task=self.task,
            net=self.shape,
            training=self.scale.training(),
            measure=cut,
            seed=seed,
        )

    def _cuts(self) -> list[Cut]:
        """Every cut that changes a layer, once."""
        cuts: dict[tuple[int, AttentionShape], Cut] = {}
        for index, layer in enumerate(self.shape.layers):
            for keep, way in product(KEPT, WAYS):
                cut = Cut(layer=index, way=way, keep=keep)
                kept = cut.kept(self.shape)
                if kept != layer:
                    cuts.setdefault((index, kept), cut)
        return list(cuts.values())
