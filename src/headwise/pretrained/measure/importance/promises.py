"""What removing a head costs, as gradients promise it: all heads at once.

Replacing a context c by its mean μ changes the objective's score by s = Σ (μ − c)·g_c; half of the
mean square of s is what that costs (see `moments`).
"""

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Inputs, Objective, Pull
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.measure.moments import heads_apart, tracked
from headwise.pretrained.model.mode import evaluating, frozen
from headwise.pretrained.text.calibration import to_device

_STRETCH = 32  # tokens whose changes are summed, where the score is a sum over as many units
_PULLS = 1, 4  # of an input, at least and at most: each is a backward pass
_SHORT, _MANY = 1024, 16  # tokens of a text whose backward passes cost little, and so may be more
_STRETCHES = 64  # that are to be pulled in all, if the inputs and as many pulls give them


def promised_losses(
    model: Any,
    measurement: Measurement,
    batches: list[dict[str, Tensor]],
    on_progress: OnProgress = quiet,
) -> Float[np.ndarray, " heads"]:
    """Every head's loss as gradients promise it on these batches alone."""
    parts = zip(measurement.sites, measurement.reductions, strict=True)
    promises = [_Promises(site, reduced.moments.context_mean) for site, reduced in parts]
    handles = [promise.hook(model) for promise in promises]
    objective, units = measurement.objective, 0.0
    try:
        left = to_device(batches, next(model.parameters()).device)
        for number, inputs in enumerate(left, start=1):
            with torch.enable_grad(), evaluating(model), frozen(model):
                seeds = [measurement.seed, 1, number]
                units += _felt(promises, model, objective, inputs, seeds, len(batches))
            on_progress(number / len(batches), "estimating what removing each head costs")
    finally:
        for handle in handles:
            handle.remove()
    return torch.cat([promise.squares for promise in promises]).numpy() / 2 / units


def _felt(
    promises: "list[_Promises]",
    model: Any,
    objective: Objective,
    inputs: Inputs,
    seeds: list[int],
    batches: int,
) -> float:
    """The units of damage of one batch, whose gradients the promises have then seen."""
    outputs = model(**inputs)
    units = 0.0
    for pull, weight in _pulls(objective, outputs, inputs, seeds, batches):
        for promise in promises:
            promise.units, promise.weight = pull.units, weight
        torch.autograd.backward(pull.tensor, pull.gradient, retain_graph=True)
        units += pull.units * weight
    return units


def _pulls(
    objective: Objective, outputs: Any, inputs: Inputs, seeds: list[int], batches: int
) -> Iterator[tuple[Pull, float]]:
    """A few and what each counts; more where there are few stretches, as of a short text, or of
    embeddings, where a sequence is one."""
    pull = objective.pull(outputs, inputs, np.random.default_rng([*seeds, 0]))
    first = next(iter(inputs.values()))
    stretches = max(len(first), pull.units / _STRETCH) * batches
    least, most = _PULLS if first.numel() * batches > _SHORT else (_PULLS[0], _MANY)
    count = min(most, max(least, ceil(_STRETCHES / stretches)))
    yield pull, 1 / count
    for index in range(1, count):
        pull = objective.pull(outputs, inputs, np.random.default_rng([*seeds, index]))
        yield pull, 1 / count


class _Promises:
    """One layer's sum of squared changes of the score, by head."""

    def __init__(self, site: AttentionSite, mean: Tensor) -> None:
        self.site, self.mean = site, mean
        self.squares = torch.zeros(site.heads, dtype=torch.float64)
        self.units, self.weight = 0, 1.0  # of the pull that is under way

    def hook(self, model: nn.Module) -> Any:
        return model.get_submodule(self.site.output).register_forward_pre_hook(self._on_context)

    def _on_context(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        context = tracked(inputs[0])
        sequences, dim = len(context), self.site.head_dim
        mean = self.mean.unsqueeze(1).float().to(context.device)
        difference = mean - heads_apart(context.detach(), dim)

        def on_gradient(gradient: Tensor) -> None:
            change = (difference * heads_apart(gradient, dim)).sum(-1, keepdim=True)
            tokens = change.shape[1]
            by_sequence = torch.unflatten(change.squeeze(-1), 1, (sequences, -1))
            # A stretch without a unit of its own is felt in the same unit as the others.
            enough = _STRETCH * self.units >= tokens
            squares = _by_stretch(by_sequence) if enough else by_sequence.sum(2).square()
            self.squares += self.weight * squares.sum(1).double().cpu()

        context.register_hook(on_gradient)
        return (context, *inputs[1:])


def _by_stretch(
    by_sequence: Float[Tensor, "heads sequences tokens"],
) -> Float[Tensor, "heads sequences"]:
    """The squares of stretches' sums, added up, in the mean over where the stretches may begin:
    stretches that overlap tell as much as one and a half times as many that do not."""
    padded = nn.functional.pad(by_sequence, (_STRETCH - 1, _STRETCH - 1))
    return padded.unfold(2, _STRETCH, 1).sum(3).square().sum(2) / _STRETCH
