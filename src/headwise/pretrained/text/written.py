"""Text that the original writes itself: without end, and none of it is held-out text.

A recovery asks only what the original answers, so its inputs need no true continuation, and a text
of the original's own is as good a question as one that was given. Few given texts are soon known by
heart; of its own there are always more.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.language import NextToken

_LENGTH, _BEGUN = 256, 16  # tokens of a text, and how many of them at most were given
_AT_ONCE = 32  # texts: what a token costs is mostly reading the weights
_TWICE = 2  # is each text given: writing costs about as much as learning from it


def writes(objective: Objective, batches: list[dict[str, Tensor]]) -> bool:
    """Whether a model goes on with what it reads; encoder–decoders read one text, write another."""
    alone = all(batch.keys() <= {"input_ids", "attention_mask"} for batch in batches)
    return isinstance(objective, NextToken) and alone


def written(model: Any, batches: list[dict[str, Tensor]], seed: int) -> Iterator[dict[str, Tensor]]:
    """Batches of usual size: beginnings of the given texts, continued as the model predicts."""
    rng = np.random.default_rng([seed, 4])
    rows = [row for batch in batches for row in batch["input_ids"]]
    length = min(_LENGTH, max(len(row) for row in rows))
    size = int(np.median([batch["input_ids"].numel() for batch in batches]))
    while True:
        begun = int(rng.integers(1, min(_BEGUN, length - 1, *map(len, rows)) + 1))
        chosen = rng.integers(len(rows), size=_AT_ONCE)
        ids = torch.stack([rows[index][:begun] for index in chosen])
        texts = _continued(model, ids, length, rng).split(max(1, size // length))
        for some in texts * _TWICE:
            yield {"input_ids": some}


@torch.no_grad()
def _continued(model: Any, ids: Tensor, length: int, rng: np.random.Generator) -> Tensor:
    """These beginnings, each further token drawn from the model's prediction."""
    device = next(model.parameters()).device
    cache = None
    while ids.shape[1] < length:
        new = ids if cache is None else ids[:, -1:]
        outputs = model(input_ids=new.to(device), past_key_values=cache, use_cache=True)
        cache = outputs.past_key_values
        drawn = _drawn(outputs.logits[:, -1], rng)
        ids = torch.cat([ids, drawn.cpu()], dim=1)
    return ids


def _drawn(logits: Tensor, rng: np.random.Generator) -> Tensor:
    """A token for each row, by inverting its distribution; multinomial draws a number a token."""
    sums = logits.float().softmax(-1).cumsum(-1)
    uniform = torch.from_numpy(rng.random((len(sums), 1), np.float32)).to(sums)
    return torch.searchsorted(sums, uniform * sums[:, -1:]).clamp_(max=sums.shape[1] - 1)
