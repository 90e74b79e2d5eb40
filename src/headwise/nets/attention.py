"""Scaled dot-product attention: what heads read, the weights of keys, and the causal form.

On a CPU what softmax heads read is computed by compiled code (`headwise.core.compiled`): with AVX2,
one thread, forward and backward, it was 1.2 times (one head of 64, length 128) to 3.8 times (many
narrow heads) as fast as torch's operations, whose products of small matrices are slow. Elsewhere
torch does it, causal attention by blocks of queries: a block needs no key after its last query,
which spares nearly half of the scores.
"""

from functools import lru_cache
from math import sqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets.compiled import compiled_for, rms_norm
from headwise.nets.layers import Params, linear, merge_heads, split_heads
from headwise.nets.positions import rotate
from headwise.nets.shape import AttentionShape

Kind = Literal["softmax", "hardmax"]

_MOST_COMPILED = 1 << 15  # tokens × coordinates of a head; beyond, packs are too large for caches
_BLOCK = 64  # queries; 32 and 128 were slower on the whole


def project(
    stream: Float[Tensor, "members batch tokens width"],
    params: Params,
    name: str,
    layer: AttentionShape,
    maps: tuple[int, int, int] | None = None,
) -> tuple[
    Float[Tensor, "members batch queries tokens rank"],
    Float[Tensor, "members batch keys tokens rank"],
    Float[Tensor, "members batch values tokens size"],
]:
    """Queries, keys and values of all tokens, by the one map `name`.qkv.

    `maps`: how many of each there are, where it is not one a head.
    """
    return _split(linear(stream, params, f"{name}.qkv"), layer, maps or (layer.heads,) * 3)


def _split(
    rows: Float[Tensor, "members batch tokens qkv"],
    layer: AttentionShape,
    maps: tuple[int, int, int],
) -> tuple[Tensor, Tensor, Tensor]:
    queries, keys, values = maps
    sizes = queries * layer.qk_dim, keys * layer.qk_dim, values * layer.v_dim
    query, key, value = rows.split(sizes, -1)
    return (
        split_heads(query, queries, layer.qk_dim),
        split_heads(key, keys, layer.qk_dim),
        split_heads(value, values, layer.v_dim),
    )


def read_heads(
    rows: Float[Tensor, "members batch tokens qkv"],
    layer: AttentionShape,
    *,
    keys: int,
    causal: bool = False,
    turns: Float[Tensor, "2 tokens half"] | None = None,
    gains: tuple[Tensor, Tensor] | None = None,
) -> Float[Tensor, "members batch tokens values"]:
    """What softmax heads read, side by side, from queries, keys and values side by side.

    The first `keys` tokens are keys. `turns`: cosines and sines of rotary positions; `gains`: those
    of the RMS norms of queries and of keys, (members, heads, rank) each.
    """
    steps = compiled_for(rows) if fits_compiled(rows.shape[2], layer) else None
    if steps is not None:
        both = None if gains is None else torch.stack(gains)
        shape = {"heads": layer.heads, "qk_dim": layer.qk_dim, "v_dim": layer.v_dim}
        return steps.read_heads(rows, keys=keys, causal=causal, turns=turns, gains=both, **shape)
    query, key, value = _split(rows, layer, (layer.heads,) * 3)
    if gains is not None:
        query, key = head_norms(query, key, gains)
    if turns is not None:
        query, key = rotate(query, turns), rotate(key, turns)
    if causal:
        return merge_heads(causal_attention(query, key, value))
    weights = attend(query * (1 / sqrt(layer.qk_dim)), key[..., :keys, :])
    return merge_heads(weights @ value[..., :keys, :])


def fits_compiled(length: int, layer: AttentionShape) -> bool:
    """Is a sequence of a head small enough for compiled attention?"""
    return length * (layer.qk_dim + layer.v_dim) <= _MOST_COMPILED


def head_norms(
    query: Float[Tensor, "members batch queries tokens rank"],
    key: Float[Tensor, "members batch keys tokens rank"],
    gains: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """The RMS norms of queries and of keys; gains are (members, heads, rank)."""
    of_query, of_key = (gain[:, None, :, None] for gain in gains)
    return rms_norm(query, of_query), rms_norm(key, of_key)


def attend(
    query: Float[Tensor, "members batch heads asking rank"],
    key: Float[Tensor, "members batch heads keys rank"],
    kind: Kind = "softmax",
    bias: Float[Tensor, "... keys"] | None = None,
) -> Float[Tensor, "members batch heads asking keys"]:
    """How much each query takes of each key; queries are scaled already.

    `bias` is added to the scores (a mask is a bias of −∞). Hardmax shares its weight among keys
    that tie.
    """
    scores = query @ key.mT
    if bias is not None:
        scores = scores + bias
    if kind == "softmax":
        return torch.softmax(scores, -1)
    best = scores == scores.amax(-1, keepdim=True)
    return best.to(scores.dtype) / best.sum(-1, keepdim=True)


def causal_attention(
    query: Float[Tensor, "members batch heads length rank"],
    key: Float[Tensor, "members batch heads length rank"],
    value: Float[Tensor, "members batch heads length size"],
) -> Float[Tensor, "members batch heads length size"]:
    """softmax(q kᵀ/√rank) v over each token itself and those before it."""
    length, query = query.shape[-2], query / sqrt(query.shape[-1])
    blocks = []
    for first in range(0, length, _BLOCK):
        stop = min(first + _BLOCK, length)
        mask = causal_mask(first, stop, query.device)
        weights = attend(query[..., first:stop, :], key[..., :stop, :], "softmax", mask)
        blocks.append(weights @ value[..., :stop, :])
    return torch.cat(blocks, -2) if len(blocks) > 1 else blocks[0]


@lru_cache(maxsize=64)
def causal_mask(first: int, stop: int, device: torch.device) -> Float[Tensor, "asking keys"]:
    """The bias by which queries first ≤ t < stop see themselves and the keys before them."""
    return torch.full((stop - first, stop), -torch.inf, device=device).triu(first + 1)
