"""What removing a head costs, measured: its context is replaced by its mean, all else as it is."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.text.calibration import to_device


@torch.no_grad()
def removal_losses(
    model: Any,
    measurement: Measurement,
    batches: list[dict[str, Tensor]],
    on_progress: OnProgress = quiet,
) -> list[float]:
    """Loss by head, layer after layer, in the objective's unit."""
    sites, objective = measurement.sites, measurement.objective
    losses = [[0.0] * site.heads for site in sites]
    units, done, total = 0.0, 0, len(batches) * sum(site.heads for site in sites)
    for inputs in to_device(batches, next(model.parameters()).device):
        reference = model(**inputs)
        for layer, site in enumerate(sites):
            module = model.get_submodule(site.output)
            means = measurement.reductions[layer].moments.context_mean
            for head in range(site.heads):
                columns = slice(head * site.head_dim, (head + 1) * site.head_dim)
                handle = module.register_forward_pre_hook(_replaced(columns, means[head]))
                try:
                    changed = model(**inputs)
                finally:
                    handle.remove()
                compared = objective.compare(reference, changed, inputs)
                losses[layer][head] += float(compared.damage.sum())
                done += 1
                on_progress(done / total, "removing heads one by one")
        units += float(compared.units.sum())
    return [loss / units for layer_losses in losses for loss in layer_losses]


def _replaced(columns: slice, mean: Tensor) -> Callable[[nn.Module, Any], Any]:
    def hook(module: nn.Module, inputs: Any) -> Any:
        context = inputs[0].clone()
        context[..., columns] = mean.to(context)
        return (context,)

    return hook
