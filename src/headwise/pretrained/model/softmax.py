"""Softmax attention written out: the implementation that also returns the weights."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters.mechanism import capped


def eager_attention(
    module: Any,
    query: Float[Tensor, "b h q dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """As transformers' own: takes masks of both kinds, and none where only causality hides."""
    key = key.repeat_interleave(module.num_key_value_groups, dim=1)
    value = value.repeat_interleave(module.num_key_value_groups, dim=1)
    scores = capped(query @ key.transpose(2, 3) * scaling, softcap)
    if position_bias is not None:
        scores = scores + position_bias
    causal = module.is_causal if is_causal is None else is_causal
    if attention_mask is None and query.shape[2] > 1 and causal:
        past = scores.shape[-1] - scores.shape[-2]
        attention_mask = torch.ones_like(scores[0, 0], dtype=torch.bool).tril(past)
    if attention_mask is not None:
        if attention_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
        else:
            scores = scores + attention_mask
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights
