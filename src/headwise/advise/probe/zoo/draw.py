"""Which task comes next: the classes of all families, each as likely as any other."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from headwise.advise.probe.zoo import (
    averages,
    extrema,
    labels,
    mixtures,
    pairs,
    patches,
    positions,
    ragged,
    spoiled,
    statistics,
    symbols,
    thresholds,
)
from headwise.advise.probe.zoo.task import ZooTask
from headwise.core.errors import require

ZooClass = Callable[[Generator], ZooTask]
FAMILIES = (
    extrema,
    averages,
    thresholds,
    mixtures,
    statistics,
    positions,
    pairs,
    labels,
    symbols,
    patches,
    spoiled,
    ragged,
)
CLASSES: dict[str, ZooClass] = {
    each.__name__.replace("_", " "): each for family in FAMILIES for each in family.CLASSES
}
RETRIEVAL = "retrieval"
RETRIEVALS = 0.15  # share of the tasks that are retrieval: enough of them to compare with
_DRAW, _DETAILS = 0x2011, 0x2012


def draw_task(seed: int, index: int) -> ZooTask:
    """Task number `index` of the zoo `seed`: its class, then every property, from the seed."""
    require(seed >= 0 and index >= 0, "seed and index are whole numbers, not negative")
    rng = np.random.default_rng([seed, index, _DRAW])
    others = [name for name in CLASSES if name != RETRIEVAL]
    name = RETRIEVAL if rng.random() < RETRIEVALS else str(rng.choice(others))
    return draw_of_class(name, seed, index)


def draw_of_class(name: str, seed: int, index: int) -> ZooTask:
    """Task number `index` of one class."""
    require(name in CLASSES, f"there is no class {name!r}; there are {', '.join(CLASSES)}")
    rng = np.random.default_rng([seed, index, _DETAILS])
    task = CLASSES[name](rng)
    return replace(task, name=name, in_numpy=bool(rng.random() < 0.5))
