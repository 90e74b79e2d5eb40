"""Which examples a step reads, and which entries dropout zeroes: functions of seed and step."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headwise.nets.choices.blocks import Drop, keep_all


def rows_of_step(examples: int, batch: int, seed: int, step: int) -> Int[np.ndarray, " batch"]:
    """The examples of a step: every epoch is a new order of all, and follows the one before."""
    places = np.arange(step * batch, (step + 1) * batch)
    epochs = places // examples
    parts = [
        _order(examples, seed, int(epoch))[places[epochs == epoch] % examples]
        for epoch in np.unique(epochs)
    ]
    return np.concatenate(parts)


@lru_cache(maxsize=64)
def _order(examples: int, seed: int, epoch: int) -> Int[np.ndarray, " examples"]:
    return np.random.default_rng([seed, epoch, 0x0D3A]).permutation(examples)


def dropout(rate: float, seeds: Sequence[int], step: int, device: str) -> Drop:
    """Dropout of a stack of members in one step: each draws from a stream of its own."""
    if rate == 0:
        return keep_all
    streams = []
    for seed in seeds:
        number = np.random.default_rng([seed, step, 0xD709]).integers(1 << 62)
        streams.append(torch.Generator(device).manual_seed(int(number)))

    def drop(stream: Tensor) -> Tensor:
        kept = torch.empty_like(stream)
        for member, generator in zip(kept, streams, strict=True):
            member.bernoulli_(1 - rate, generator=generator)
        return stream * kept.div_(1 - rate)

    return drop
