"""The class-token form of a variant: one query, so all but one step is O(heads).

As in `folded.py`: with r_t the embedding's last hidden layer, W = [W₂, c − b₂] and u_i the
direction of map i, a score is (Wᵀ u_i)·(r_t, 0) or, of the class token, ·(0, 1), and pooling comes
before the value map. What a variant does to scores and weights across heads is linear, so it is
done to the directions and to what was pooled, not to T scores:

    D = mix_scores(Wᵀ u)                        one direction a map
    P = combine(Σ_t a(t) r_t),  a = softmax(D·r) over the keys that a map sees
    S = combine(1)                              the weights' sums, which need not be one
    o_i = gate((W_V,i W) P_i + S_i (W_V,i b₂ + b_V,i))

Linear attention, whose scores are not linear in the keys, has a key for every token
(`pool_by_features`); pooling comes before its value map too.
"""

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.nets.layers import Hidden, Params, linear, split_heads
from headwise.nets.pool import PoolByScore
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant
from headwise.nets.variants.linear import pool_by_features
from headwise.nets.variants.mixing import from_behind, mix_heads

_LAYER = "layers.0"


def pool_by_heads(
    variant: Variant, layer: AttentionShape, params: Params, hidden: Hidden, embedding: str
) -> Float[Tensor, "members batch both"]:
    """The heads' outputs side by side; `embedding` names the embedding's last map, W₂ and b₂."""
    queries, keys, _ = variant.maps(layer)
    class_token = params["class_token"].unsqueeze(1)  # (members, 1, dim)
    weight, bias = params[f"{embedding}.weight"], params[f"{embedding}.bias"]
    columns = torch.cat([weight, class_token.mT - bias.unsqueeze(2)], 2)  # W: (members, dim, F)

    query = linear(class_token, params, f"{_LAYER}.query") / sqrt(layer.qk_dim)
    if variant.folds:
        key = _every(params[f"{_LAYER}.key.weight"].unflatten(1, (keys, layer.qk_dim)), queries)
        directions = (query.view(len(key), queries, 1, -1) @ key).squeeze(2) @ columns  # Wᵀ u_i
        mixed = variant.mix_scores(params, _LAYER, directions[:, None, :, None]).flatten(1, 3)
        pooled, own = PoolByScore.apply(
            hidden,
            mixed[..., :-1],
            mixed[..., -1],
            class_sight(variant, queries, hidden.shape[2], hidden.device),
            variant.strongest(),
        )
    else:
        key_map = params[f"{_LAYER}.key.weight"] @ columns  # of (r_t, 0) and (0, 1)
        shift = linear(bias.unsqueeze(1), params, f"{_LAYER}.key")
        pooled, own = pool_by_features(hidden, query, key_map, shift, queries)
    pooled = torch.cat([pooled, own.unsqueeze(3)], 3).unsqueeze(3)  # (members, batch, maps, 1, F)
    pooled = variant.combine(params, _LAYER, pooled).squeeze(3)
    ones = pooled.new_ones(len(hidden), 1, queries, 1, 1)
    sums = variant.combine(params, _LAYER, ones).squeeze(3)  # (members, 1, heads, 1)
    outputs = _values(variant, layer, params, pooled, sums, columns, bias)
    asking = class_token.unsqueeze(1)
    return variant.gate(params, _LAYER, asking, outputs.unsqueeze(3)).flatten(2)


def pool_by_full_form(
    variant: Variant, layer: AttentionShape, params: Params, hidden: Hidden, embedding: str
) -> Float[Tensor, "members batch both"]:
    """The same function, with a key and a value for every token."""
    queries, keys, values = variant.maps(layer)
    tokens = linear(hidden, params, embedding)
    asking = params["class_token"][:, None, None].expand(-1, hidden.shape[1], 1, -1)
    stream = torch.cat([tokens, asking], 2)
    query = linear(asking, params, f"{_LAYER}.query") / sqrt(layer.qk_dim)
    outputs = mix_heads(
        variant,
        params,
        _LAYER,
        asking,
        split_heads(query, queries, layer.qk_dim),
        split_heads(linear(stream, params, f"{_LAYER}.key"), keys, layer.qk_dim),
        split_heads(linear(stream, params, f"{_LAYER}.value"), values, layer.v_dim),
        class_sight(variant, queries, hidden.shape[2], hidden.device),
    )
    return outputs.flatten(2)


def class_sight(
    variant: Variant, queries: int, length: int, device: torch.device
) -> Bool[Tensor, "queries 1 keys"] | None:
    """What each map sees of the tokens and, last, of the class token; None: all."""
    return variant.visible(from_behind(length, device), length, queries)


def _values(
    variant: Variant,
    layer: AttentionShape,
    params: Params,
    pooled: Float[Tensor, "members batch heads columns"],
    sums: Float[Tensor, "members 1 heads 1"],
    columns: Float[Tensor, "members dim columns"],
    bias: Float[Tensor, "members dim"],
) -> Float[Tensor, "members batch heads size"]:
    """(W_V,i W) P_i + S_i (W_V,i b₂ + b_V,i)."""
    values = variant.maps(layer)[2]
    value, value_bias = params[f"{_LAYER}.value.weight"], params[f"{_LAYER}.value.bias"]
    of_columns = _every((value @ columns).unflatten(1, (values, -1)), layer.heads)
    fixed = (value @ bias.unsqueeze(2)).squeeze(2) + value_bias
    fixed = _every(fixed.unflatten(1, (values, -1)), layer.heads)  # (members, heads, size)
    outputs = (pooled.transpose(1, 2) @ of_columns.mT).transpose(1, 2)
    return outputs + sums * fixed.unsqueeze(1)


def _every(maps: Float[Tensor, "members maps *size"], heads: int) -> Tensor:
    """A map for every head, where several share one."""
    shares = heads // maps.shape[1]
    return maps if shares == 1 else maps.repeat_interleave(shares, 1)
