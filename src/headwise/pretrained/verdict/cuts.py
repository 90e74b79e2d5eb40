"""What cuts do to the whole model, each of them alone; kept on disk for who tries them again.

What is kept is taken if the last cut still does to the first input what it did, to the last bit:
what a hook does, say, is not in the key.
"""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.measure.store import Kept, Tensors, outputs_key
from headwise.pretrained.measure.trees import flat
from headwise.pretrained.model.apply import replace_attention
from headwise.pretrained.model.cut import cut_layer
from headwise.pretrained.model.earlier import EarlierBlocks
from headwise.pretrained.plan.shapes import LayerShape
from headwise.pretrained.text.calibration import to_device

Cut = tuple[int, LayerShape]  # a layer, and the shape it gets


def damages_alone(
    model: Any,
    measurement: Measurement,
    cuts: list[Cut],
    batches: list[dict[str, Tensor]],
    cache: bool,
    on_progress: OnProgress = quiet,
) -> list[float]:
    """The damage a unit that each cut does."""
    kept = Kept(_key(model, measurement, cuts, batches) if cache else None)
    sums = (kept.read("trial") or {}).get("sums")
    if sums is None or not _as_before(model, measurement, cuts, batches, sums):
        trial = _Trial(model, measurement, batches)
        found = []
        for done, cut in enumerate(cuts, start=1):
            found.append(trial.sums(*cut))
            on_progress(done / len(cuts), "trying each cut alone")
        sums = torch.stack(found)
        kept.finish({"sums": sums}, "trial")
    damage, units = sums.sum(1).T
    return [float(each) for each in damage / units]


def _key(
    model: Any, measurement: Measurement, cuts: list[Cut], batches: list[dict[str, Tensor]]
) -> str:
    reductions: Tensors = flat(measurement.reductions, "reductions", frozenset({"weights"}))
    return outputs_key(model, batches, measurement.objective, [repr(cuts)], reductions)


def _as_before(
    model: Any,
    measurement: Measurement,
    cuts: list[Cut],
    batches: list[dict[str, Tensor]],
    sums: Float[Tensor, "cuts inputs 2"],
) -> bool:
    again = _Trial(model, measurement, batches[:1]).sums(*cuts[-1])
    return torch.equal(again, sums[-1, :1])


class _Trial:
    """A copy of the model, in which a layer at a time is cut and put back."""

    def __init__(
        self, model: Any, measurement: Measurement, batches: list[dict[str, Tensor]]
    ) -> None:
        self.model, self.measurement = copy.deepcopy(model), measurement
        self.parts = [
            EarlierBlocks(self.model, measurement.sites, batch)
            for batch in to_device(batches, next(model.parameters()).device)
        ]

    @torch.no_grad()
    def sums(self, layer: int, shape: LayerShape) -> Float[Tensor, "inputs 2"]:
        """Damage and units of each input."""
        site = self.measurement.sites[layer]
        paths = [site.path] if site.output_inside else [site.path, site.output]
        whole = {path: self.model.get_submodule(path) for path in paths}
        sums = []
        try:
            cut = cut_layer(site, self.measurement.reductions[layer], shape)
            replace_attention(self.model, site, cut)
            for part in self.parts:
                changed = part.outputs(layer)
                compared = self.measurement.objective.compare(part.original, changed, part.batch)
                sums.append([float(compared.damage.sum()), float(compared.units.sum())])
        finally:
            for path, module in whole.items():
                self.model.set_submodule(path, module)
        return torch.tensor(sums, dtype=torch.float64)
