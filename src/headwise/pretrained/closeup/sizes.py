"""Sizes to choose from: what a compression to each would keep and cost, beside other methods.

The curve is predicted and, at the points that `MEASURED` names, measured on held-out data; so are
the baselines. Every point holds its plan, so that a page can show what each layer would keep.
"""

from dataclasses import dataclass, replace
from typing import Any

from headwise.core.errors import InputError
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained._evaluate import quality
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.counts import original_parameters, parameters
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.plan.shapes import LayerShape
from headwise.pretrained.text.calibration import Sample
from headwise.pretrained.verdict.said import Said

SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3)
MEASURED = (0.9, 0.75, 0.6, 0.5, 0.3)
BASELINES = ("uniform-svd", "prune-heads", "random")
_COMPARED = (0.75, 0.5)  # where the baselines are measured


@dataclass(frozen=True)
class SizePoint:
    """One method at one share of the attention's parameters; damage in the objective's unit.

    `shares` are those of each layer's parameters. `damage` and its 95 % interval are None where it
    was only predicted, and `predicted` where a method makes no prediction.
    """

    method: str
    kept: float
    layers: tuple[LayerShape, ...]
    shares: tuple[float, ...]
    predicted: float | None = None
    damage: float | None = None
    low: float | None = None
    high: float | None = None


def sizes_to_choose(
    model: Any,
    measurement: Measurement,
    sample: Sample,
    method: str = "fisher",
    on_progress: OnProgress = quiet,
    *,
    uniform: bool = False,
    fast: bool = False,
) -> list[SizePoint]:
    """The method along its curve, then the baselines; sizes that a model cannot have are left out.

    Plans are made anew for every share of the parameters: what each layer keeps is that size's
    best, not a cut of the next larger one. `uniform` and `fast` are the compression's own.
    """
    wanted = [(method, share, share in MEASURED) for share in SHARES]
    wanted += [
        (other, share, True) for other in BASELINES if other != method for share in _COMPARED
    ]
    said = Said(model, measurement.sites, measurement.objective, sample.batches, cache=False)
    points = []
    for done, (name, share, measured) in enumerate(wanted, start=1):
        try:
            own = name == method
            plan = make_plan(measurement, Budget(share), name, own and uniform, own and fast)
        except InputError:
            continue
        kept, shares = _shares(measurement, plan.layers)
        point = SizePoint(name, kept, plan.layers, shares, plan.predicted_damage)
        if measured:
            smaller = apply_plan(model, measurement, plan)
            seen = quality(model, smaller, measurement.objective, sample, known=said)
            point = replace(point, damage=seen.damage, low=seen.low, high=seen.high)
        points.append(point)
        on_progress(done / len(wanted), "measuring other sizes for the page")
    return points


def _shares(
    measurement: Measurement, layers: tuple[LayerShape, ...]
) -> tuple[float, tuple[float, ...]]:
    """What the model keeps of its attention's parameters, and each layer of its own."""
    weights = [reductions.weights for reductions in measurement.reductions]
    whole = [original_parameters(each) for each in weights]
    left = [
        parameters(site, shape, each)
        for site, shape, each in zip(measurement.sites, layers, weights, strict=True)
    ]
    return sum(left) / sum(whole), tuple(a / b for a, b in zip(left, whole, strict=True))
