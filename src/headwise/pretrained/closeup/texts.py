"""The same beginnings, continued by the original and by the smaller model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.text.calibration import spread

_PROMPTS, _PROMPT, _CONTINUED = 3, 24, 40  # texts, and tokens of each


@dataclass(frozen=True)
class Continuation:
    """A beginning from held-out text and what both models write after it, greedily.

    `equal` counts the tokens before the two differ.
    """

    prompt: str
    before: str
    after: str
    equal: int


@torch.no_grad()
def continuations(
    original: Any,
    compressed: Any,
    held_out: list[dict[str, Tensor]],
    objective: Objective,
    tokenizer: Any,
) -> list[Continuation]:
    """Texts of language models with a tokenizer; none of others."""
    if not isinstance(objective, NextToken) or tokenizer is None:
        return []
    room = int(getattr(original.config, "max_position_embeddings", 10**6)) - _CONTINUED
    usable = [batch for batch in held_out if "input_ids" in batch and room >= 8]
    device = next(original.parameters()).device
    found = []
    for batch in spread(usable, _PROMPTS):
        prompt = batch["input_ids"][:1, : min(_PROMPT, room)].to(device)
        first, second = (_continued(model, prompt) for model in (original, compressed))
        equal = next(
            (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
            min(len(first), len(second)),
        )
        begun, before, after = (
            str(tokenizer.decode(ids, skip_special_tokens=True))
            for ids in (prompt[0], first, second)
        )
        found.append(Continuation(begun, before, after, equal))
    return found


def _continued(model: Any, prompt: Tensor) -> list[int]:
    mask = torch.ones_like(prompt)
    ids = model.generate(
        prompt,
        attention_mask=mask,
        max_new_tokens=_CONTINUED,
        do_sample=False,
        pad_token_id=0,
    )
    paired = getattr(model.config, "is_encoder_decoder", False)
    begun = 1 if paired else prompt.shape[1]  # a decoder of its own begins with its start token
    return [int(number) for number in ids[0, begun:]]
