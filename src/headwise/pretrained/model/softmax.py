"""Softmax attention written out: where the weights are asked for, and for one token on a CPU."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters.mechanism import capped


def attention_function(
    config: Any, options: dict[str, Any], tokens: Float[Tensor, "*b t dim"], plain: bool
) -> Any:
    """transformers' function by the configuration's name; `plain` is without bias, cap, dropout."""
    if options.get("output_attentions"):
        return eager_attention
    name = config._attn_implementation
    if plain and name == "sdpa" and tokens.shape[-2] == 1 and tokens.device.type == "cpu":
        return one_query_attention
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    return ALL_ATTENTION_FUNCTIONS.get_interface(name, eager_attention)


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
        scores = _masked(scores, attention_mask)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights


def one_query_attention(
    module: Any,
    query: Float[Tensor, "b h 1 dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    attention_mask: Tensor | None,
    scaling: float,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """One token after many, where reading the cache is the cost: it is read once, as it is.

    torch's own asks for keys and values of one size, and under a mask for a copy of them for every
    query head.
    """
    batch, groups = key.shape[:2]
    grouped = (query * scaling).reshape(batch * groups, -1, query.shape[-1])
    context = contexts_of(grouped, key, value, attention_mask)
    return context.reshape(batch, 1, query.shape[1], -1), None


def contexts_of(
    scaled: Float[Tensor, "bg n dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    mask: Tensor | None,
) -> Float[Tensor, "bg n v_dim"]:
    """What queries, already scaled, read of their group's keys and values.

    These are flattened: matmul of four dimensions takes as long as the rest.
    """
    scores = torch.bmm(scaled, key.flatten(0, 1).transpose(1, 2))
    if mask is not None:
        scores = _masked(torch.unflatten(scores, 0, key.shape[:2]), mask).flatten(0, 1)
    if scores.dtype == torch.float32:
        weights = scores.softmax(-1)
    else:
        weights = scores.softmax(-1, dtype=torch.float32).to(scores.dtype)
    return torch.bmm(weights, value.flatten(0, 1))


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask
