"""What a recovery reads, step by step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.text.calibration import counted, token_count
from headwise.pretrained.text.written import writes, written

_STEP = 512  # tokens
_TWICE = 2  # how often a batch is read where there is other text


def lessons_for(
    objective: Objective,
    original: Any,
    batches: list[dict[str, Tensor]],
    steps: int,
    seed: int,
) -> Iterator[dict[str, Tensor]]:
    """A batch a step: the given ones in random order, at most twice each, and evenly between them
    what the original writes; where it writes nothing, the given ones again and again."""
    rng = np.random.default_rng([seed, 3])
    own = written(original, batches, seed) if writes(objective, batches) else None
    given = steps if own is None else min(steps, _TWICE * len(batches))
    order: list[int] = []
    for step in range(steps):
        if own is not None and (step + 1) * given // steps == step * given // steps:
            yield next(own)
            continue
        order = order or list(rng.permutation(len(batches)))
        yield batches[order.pop()]


def in_small_steps(batches: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Texts in batches of at most about 512 tokens, or of one text; others as they are.

    At a low rate, many small steps bring more than few large ones of the same text.
    """
    found = []
    for batch in batches:
        rows = {len(value) for value in batch.values()}
        if counted([batch]) != "tokens" or len(rows) > 1:
            found.append(batch)
            continue
        (texts,) = rows
        at_once = max(1, _STEP * texts // token_count([batch]))
        parts = {name: value.split(at_once) for name, value in batch.items()}
        found += [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    return found
