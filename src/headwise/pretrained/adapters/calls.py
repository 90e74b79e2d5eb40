"""What a family's attention module is called with, under the names that all families share here."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters.base import AttentionSite

_SHARED_NAMES = {
    "mask": "attention_mask",
    "layer_past": "past_key_values",
    "encoder_hidden_states": "key_value_states",
    "alibi": "position_bias",
}


def named(
    argument_names: Sequence[str], args: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """All arguments by name."""
    given = dict(zip(argument_names, args, strict=False)) | dict(options)
    return {_SHARED_NAMES.get(name, name): value for name, value in given.items()}


def rotation(site: AttentionSite, given: Mapping[str, Any]) -> tuple[Tensor, Tensor] | None:
    """Cosines and sines (b, t, rotary_dim); None without RoPE.

    DINOv3 gives them for all images at once, and for patches only: the tokens before those (class,
    registers) do not turn, which is to turn by angle zero. GPT-J's layers make them of positions.
    """
    if not site.rotary:
        return None
    if "position_embeddings" not in given:
        return _made_angles(site, given["position_ids"], given["hidden_states"])
    cos, sin = given["position_embeddings"]
    if cos.ndim == 2:
        cos, sin = cos.unsqueeze(0), sin.unsqueeze(0)
    before = given["hidden_states"].shape[1] - cos.shape[1]
    if before > 0:
        cos = nn.functional.pad(cos, (0, 0, before, 0), value=1.0)
        sin = nn.functional.pad(sin, (0, 0, before, 0))
    return cos, sin


def _made_angles(site: AttentionSite, places: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Pair i turns by 10000^(−2i / rotary_dim) a token."""
    size = site.rotary_dim or site.head_dim
    rate = 10_000.0 ** (-torch.arange(0, size, 2, device=places.device) / size)
    angle = (places.unsqueeze(-1) * rate).repeat(1, 1, 2)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def given_bias(site: AttentionSite, given: Mapping[str, Any]) -> Tensor | None:
    """Numbers to add to scores, (b or 1, heads, queries or 1, keys); None where none are given.

    ALiBi's are one row for all queries: what grows with the key's place tells distances apart as
    much as what falls with the distance, since the softmax does not see what a row has in common.
    """
    bias: Tensor | None = given.get("position_bias")
    if bias is None or not site.position_bias:
        return None
    return bias if bias.ndim == 4 else torch.unflatten(bias, 0, (-1, site.heads))


def made_bias(module: Any, heads: int, queries: Tensor, keys: int, past: int = 0) -> Tensor | None:
    """T5's biases by distance, of a module that is to make them; zeros where its layer has none."""
    if not hasattr(module, "has_relative_attention_bias"):
        return None
    if not module.has_relative_attention_bias:
        return queries.new_zeros(1, heads, queries.shape[1], keys)
    made: Tensor = module.compute_bias(
        queries.shape[1], keys, device=queries.device, past_seen_tokens=past
    )
    return made
