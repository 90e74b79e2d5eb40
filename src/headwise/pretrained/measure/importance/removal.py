"""What removing a head costs, measured: heads are removed one after the other."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.measure.comparing import Inputs, divergences
from headwise.pretrained.measure.importance.words import likely_words
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.earlier import EarlierBlocks
from headwise.pretrained.text.calibration import to_device


class Removals(NamedTuple):
    """What removing each of some heads costs, and how surely that ranks them."""

    losses: Float[np.ndarray, " heads"]  # the objective's unit
    agreement: float | None  # rank correlation with as much other text; None: cannot be told


@torch.no_grad()
def removal_losses(
    model: Any,
    measurement: Measurement,
    batches: list[Inputs],
    heads: list[tuple[int, int]],
    on_progress: OnProgress = quiet,
) -> Removals:
    """Damage of replacing each of these (layer, head), alone, by its mean."""
    damage: list[list[Tensor]] = [[] for _ in heads]  # by sequence
    units, done = [], 0
    for inputs in to_device(batches, next(model.parameters()).device):
        blocks = EarlierBlocks(model, measurement.sites, inputs)
        for index, changed in enumerate(_without_each(blocks, measurement, heads)):
            compared = measurement.objective.compare(blocks.original, changed, inputs)
            damage[index].append(compared.damage.cpu())
            done += 1
            on_progress(done / len(heads) / len(batches), "removing heads one by one")
        units.append(compared.units.cpu())
    by_sequence = torch.stack([torch.cat(each) for each in damage]).double().numpy()
    whole = torch.cat(units).double().numpy()
    return Removals(by_sequence.sum(1) / whole.sum(), _agreement(by_sequence))


@torch.no_grad()
def tried_losses(
    model: Any,
    measurement: Measurement,
    batches: list[Inputs],
    heads: list[tuple[int, int]],
    on_progress: OnProgress = quiet,
) -> Float[np.ndarray, " heads"]:
    """The same of a language model's heads for less: the divergence between likely words alone.

    Most of a small model's work is its table of words. By the chain rule the divergence of all is
    that among likely words times their probability, and what the others add, which is little.
    """
    sums, tokens = np.zeros(len(heads)), 0
    for number, inputs in enumerate(to_device(batches, next(model.parameters()).device), start=1):
        with likely_words(model, inputs):
            blocks = EarlierBlocks(model, measurement.sites, inputs)
            before = blocks.original.logits.flatten(0, 1)
            for index, changed in enumerate(_without_each(blocks, measurement, heads)):
                sums[index] += float(divergences(before, changed.logits.flatten(0, 1)).sum())
        tokens += len(before)
        on_progress(number / len(batches), "estimating what removing each head costs")
    return sums / tokens


def _without_each(
    blocks: EarlierBlocks, measurement: Measurement, heads: list[tuple[int, int]]
) -> Iterator[Any]:
    """What the model puts out without each of these heads."""
    for layer, head in heads:
        site = measurement.sites[layer]
        columns = slice(head * site.head_dim, (head + 1) * site.head_dim)
        mean = measurement.reductions[layer].moments.context_mean[head]
        module = blocks.model.get_submodule(site.output)
        handle = module.register_forward_pre_hook(_replaced(columns, mean))
        try:
            changed = blocks.outputs(layer)
        finally:
            handle.remove()
        yield changed


def rank_correlation(one: Iterable[float], other: Iterable[float]) -> float:
    """Spearman's; equal values share the mean of their ranks."""
    both = pd.DataFrame({"one": list(one), "other": list(other)})
    return float(both.corr(method="spearman").iloc[0, 1])


def _agreement(damage: Float[np.ndarray, "heads sequences"]) -> float | None:
    """From the rank correlation r of two halves, that of two wholes: 2r/(1 + r), after Spearman and
    Brown."""
    halves = damage[:, ::2].sum(1), damage[:, 1::2].sum(1)
    if len(damage) < 3 or any(np.ptp(half) == 0 for half in halves):
        return None
    between = rank_correlation(*halves)
    return 2 * between / (1 + between) if between > 0 else between


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
