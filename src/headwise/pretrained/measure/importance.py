"""What removing a head costs, measured: its context is replaced by its mean, all else as it is."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.earlier import EarlierBlocks
from headwise.pretrained.text.calibration import to_device


@torch.no_grad()
def removal_losses(
    model: Any,
    measurement: Measurement,
    batches: list[dict[str, Tensor]],
    heads: list[tuple[int, int]],
    on_progress: OnProgress = quiet,
) -> list[float]:
    """Damage of replacing each of these (layer, head), alone, by its mean; the objective's unit."""
    damage, units, done = [0.0] * len(heads), 0.0, 0
    for inputs in to_device(batches, next(model.parameters()).device):
        blocks = EarlierBlocks(model, measurement.sites, inputs)
        for index, (layer, head) in enumerate(heads):
            site = measurement.sites[layer]
            columns = slice(head * site.head_dim, (head + 1) * site.head_dim)
            mean = measurement.reductions[layer].moments.context_mean[head]
            module = model.get_submodule(site.output)
            handle = module.register_forward_pre_hook(_replaced(columns, mean))
            try:
                changed = blocks.outputs(layer)
                compared = measurement.objective.compare(blocks.original, changed, inputs)
            finally:
                handle.remove()
            damage[index] += float(compared.damage.sum())
            done += 1
            on_progress(done / len(heads) / len(batches), "removing heads one by one")
        units += float(compared.units.sum())
    return [each / units for each in damage]


def all_heads(measurement: Measurement) -> list[tuple[int, int]]:
    """Every (layer, head), in order."""
    sites = enumerate(measurement.sites)
    return [(layer, head) for layer, site in sites for head in range(site.heads)]


def _replaced(columns: slice, mean: Tensor) -> Callable[[nn.Module, Any], Any]:
    def hook(module: nn.Module, inputs: Any) -> Any:
        context = inputs[0].clone()
        context[..., columns] = mean.to(context)
        return (context,)

    return hook
