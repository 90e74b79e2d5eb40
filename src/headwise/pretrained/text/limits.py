"""How long an input a model takes."""

from typing import Any

from torch import nn

DECODER_LENGTH = 2048
_UNLIMITED = 1_000_000  # tokenizers without a limit say an absurd one


def longest_input(model: Any, tokenizer: Any = None) -> int | None:
    """Tokens, by its positions and its tokenizer; None where neither says."""
    limits = [getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        # RoBERTa's first positions are those of padding, and no token's.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            used = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - used)
    said = getattr(tokenizer, "model_max_length", None)
    limits.append(said if said is not None and said < _UNLIMITED else None)
    known = [int(limit) for limit in limits if limit]
    return min(known) if known else None
