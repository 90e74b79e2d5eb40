"""Mask tokens as masked language models were trained: 15 %, most of them by the mask token."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import require

_CHOSEN, _MASKED, _REPLACED = 0.15, 0.8, 0.1


def mask_tokens(
    batches: list[dict[str, Tensor]], tokenizer: Any, seed: int, part: int
) -> list[dict[str, Tensor]]:
    """Of the chosen tokens 80 % become the mask, 10 % another token and 10 % stay (BERT's recipe).

    Labels hold what the chosen ones were, −100 elsewhere. Every sequence has at least one.
    """
    mask = getattr(tokenizer, "mask_token_id", None)
    require(
        mask is not None,
        "a masked language model is judged on masked text, and this tokenizer has no mask token",
    )
    assert mask is not None
    rng = np.random.default_rng([seed, 4, part])
    special = torch.tensor(sorted(tokenizer.all_special_ids))
    masked = []
    for batch in batches:
        ids = batch["input_ids"].clone()
        chance = torch.from_numpy(rng.random(ids.shape))
        chance[torch.isin(ids, special)] = 2.0
        least = chance.amin(1, keepdim=True)
        chosen = (chance < _CHOSEN) | ((chance == least) & (chance < 2.0))
        labels = torch.where(chosen, ids, -100)
        fate = torch.from_numpy(rng.random(ids.shape))
        other = torch.from_numpy(rng.integers(0, len(tokenizer), ids.shape))
        ids[chosen & (fate < _MASKED)] = mask
        replaced = chosen & (fate >= _MASKED) & (fate < _MASKED + _REPLACED)
        ids[replaced] = other[replaced]
        masked.append({"input_ids": ids, "labels": labels})
    return masked
