"""A short recovery: train the reduced attention to give the original's outputs again."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.calibration import to_device
from headwise.pretrained.objectives import Embedding, Objective, embed


def recover(
    compressed: Any,
    original: Any,
    sites: list[AttentionSite],
    objective: Objective,
    batches: list[dict[str, Tensor]],
    steps: int,
    *,
    seed: int = 0,
    rate: float = 3e-4,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[float]:
    """Adam on the attention weights only, matching the original's outputs; the loss by step."""
    parameters = list(_attention(compressed, sites))
    trainable = {id(parameter) for parameter in parameters}
    for parameter in compressed.parameters():
        parameter.requires_grad_(id(parameter) in trainable)
    optimiser = torch.optim.Adam(parameters, lr=rate)
    rng = np.random.default_rng([seed, 3])
    device = parameters[0].device
    losses = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 + np.cos(np.pi * step / steps)) / 2
        batch = batches[int(rng.integers(len(batches)))]
        inputs = next(to_device([batch], device))
        with torch.no_grad():
            target = original(**inputs)
        with torch.enable_grad():
            loss = mismatch(objective, target, compressed(**inputs))
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        losses.append(float(loss.detach()))
        progress("recovering", step + 1, steps)
    compressed.requires_grad_(True)
    return losses


def mismatch(objective: Objective, target: Any, output: Any) -> Tensor:
    """Divergence of predictions, or 1 − cosine of embeddings."""
    if isinstance(objective, Embedding):
        cosine: Tensor = (embed(target) * embed(output)).sum(-1)
        return (1 - cosine).mean()
    p = target.logits.flatten(0, -2).float().log_softmax(-1)
    q = output.logits.flatten(0, -2).float().log_softmax(-1)
    return nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)


def _attention(model: nn.Module, sites: list[AttentionSite]) -> Iterator[nn.Parameter]:
    for site in sites:
        yield from model.get_submodule(site.path).parameters()
        if not site.output_inside:
            yield from model.get_submodule(site.output).parameters()
