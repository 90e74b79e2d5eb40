"""The class-token network, as one function of stacked parameters.

Every parameter has a leading axis of members, so many networks of one shape are one program; a
single network is the case of one member.

With one layer the query is the class token c alone, the same for every input. With r_t the last
hidden layer of the embedding, a token is x̂_t = W₂ r_t + b₂, and the class token is the same map
of one more coordinate: c = W₂·0 + 1·(c − b₂) + b₂. So with W = [W₂, c − b₂]

    u_i = W_K,iᵀ (W_Q,i c + b_Q,i) / √qk_dim           one vector a head
    scores of all keys: Wᵀ u_i against (r_t, 0) and (0, 1)      up to a constant, which cancels
    P_i = (Σ_t a_i(t) r_t, a_i(class token))           pooling comes before the value map
    o_i = (W_V,i W) P_i + W_V,i b₂ + b_V,i

which costs O(T) and is the same function of the same, separately trained, parameters. The key
bias adds a constant to each score and cancels.
"""

from collections.abc import Mapping
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.nets.pool import PoolByScore
from headwise.nets.shape import AttentionShape, ClassTokenShape

Params = Mapping[str, Tensor]


def forward(
    shape: ClassTokenShape,
    params: Params,
    inputs: Float[Tensor, "#members batch length token_dim"],
) -> Float[Tensor, "members batch outputs"]:
    """The networks' outputs: member m reads inputs[m], or the one input that all share."""
    return readout(shape, params, attend(shape, params, inputs))


def attend(
    shape: ClassTokenShape,
    params: Params,
    inputs: Float[Tensor, "#members batch length token_dim"],
) -> Float[Tensor, "members batch dim"]:
    """The class token after the last attention layer: all that the readout sees."""
    _check(shape, inputs)
    if len(shape.layers) == 1 and not _adds_positions(shape):
        return _attend_folded(shape, params, _embed_hidden(shape, params, inputs))
    stream = _before_last_layer(shape, params, inputs)
    return _attend_from(shape, -1, params, stream[:, :, -1:], stream).squeeze(2)


def attention_weights(
    shape: ClassTokenShape,
    params: Params,
    inputs: Float[Tensor, "#members batch length token_dim"],
) -> Float[Tensor, "members batch length heads"]:
    """How much each head of the last layer takes of each token (the class token has the rest)."""
    _check(shape, inputs)
    stream = _before_last_layer(shape, params, inputs)
    attention = _attention(shape, -1, params, stream[:, :, -1:], stream).squeeze(3)
    return attention[..., : inputs.shape[2]].mT


def readout(
    shape: ClassTokenShape, params: Params, hidden: Float[Tensor, "members batch dim"]
) -> Float[Tensor, "members batch outputs"]:
    """The MLP that reads the class token."""
    last = len(shape.readout.widths)
    for index in range(last):
        hidden = _linear(hidden, *_weights(params, f"readout.{index}"))
        hidden = _activate(hidden, shape.readout.activation)
    return _linear(hidden, *_weights(params, f"readout.{last}"))


def _before_last_layer(
    shape: ClassTokenShape, params: Params, inputs: Tensor
) -> Float[Tensor, "members batch tokens dim"]:
    """Tokens, the class token last, as the last layer finds them."""
    hidden = _embed_hidden(shape, params, inputs)
    tokens = _linear(hidden, *_weights(params, f"embed.{len(shape.embed.widths)}"))
    if _adds_positions(shape):
        tokens = tokens + params["positions"][:, None, : inputs.shape[2]]
    start = params["class_token"][:, None, None].expand(-1, inputs.shape[1], 1, -1)
    stream = torch.cat([tokens, start], 2)  # (members, batch, length + 1, dim)
    for index in range(len(shape.layers) - 1):
        stream = _attend_from(shape, index, params, stream, stream)
    return stream


def _embed_hidden(
    shape: ClassTokenShape, params: Params, inputs: Tensor
) -> Float[Tensor, "members batch length hidden"]:
    """The last hidden layer of the embedding, r_t.

    The largest arrays of the network, so memory is what counts: the bias is a column of the first
    product, not an array to start from, and the activation works on the product itself, not on a
    view of it (of which autograd would keep, clear and copy the whole).
    """
    if not shape.embed.widths:
        return inputs.expand(params["class_token"].shape[0], -1, -1, -1)
    weight, bias = _weights(params, "embed.0")
    tokens = functional.pad(inputs.flatten(1, 2), (0, 1), value=1.0)
    hidden = tokens.expand(len(weight), -1, -1) @ torch.cat([weight, bias.unsqueeze(2)], 2).mT
    if shape.positions and shape.position_kind == "concat":
        hidden = hidden + params["positions"][:, : inputs.shape[2]].repeat(1, inputs.shape[1], 1)
    hidden = _activate(hidden, shape.embed.activation)
    for index in range(1, len(shape.embed.widths)):
        hidden = _linear(hidden, *_weights(params, f"embed.{index}"))
        hidden = _activate(hidden, shape.embed.activation)
    return hidden.unflatten(1, inputs.shape[1:3])


def _attend_folded(
    shape: ClassTokenShape, params: Params, hidden: Float[Tensor, "members batch length hidden"]
) -> Float[Tensor, "members batch dim"]:
    """The only layer, key and value maps folded through the embedding; see the module's top."""
    (layer,) = shape.layers
    members, _, _, width = hidden.shape
    per_query, per_value = (layer.heads, layer.qk_dim), (layer.heads, layer.v_dim)
    class_token = params["class_token"].unsqueeze(1)  # (members, 1, dim)
    weight, bias = _weights(params, f"embed.{len(shape.embed.widths)}")
    columns = weight
    if shape.class_token_is_key:
        columns = torch.cat([weight, class_token.mT - bias.unsqueeze(2)], 2)  # W: (members, dim, F)

    query = _linear(class_token, *_weights(params, "layers.0.query")) * _scale(shape, layer)
    key = params["layers.0.key.weight"].unflatten(1, per_query)
    direction = (query.view(members, layer.heads, 1, -1) @ key).squeeze(2)  # u_i
    folded = direction @ columns  # Wᵀ u_i: (members, heads, F)
    if shape.class_token_is_key:
        pooled, of_class = PoolByScore.apply(hidden, folded[..., :width], folded[..., width])
        pooled = torch.cat([pooled, of_class.unsqueeze(3)], 3)  # P_i: (members, batch, heads, F)
    else:
        never = folded.new_full(folded.shape[:2], -torch.inf)
        pooled, _ = PoolByScore.apply(hidden, folded, never)

    value, value_bias = _weights(params, "layers.0.value")
    of_columns = (value @ columns).unflatten(1, per_value)  # W_V,i W
    heads = (pooled.transpose(1, 2) @ of_columns.mT).transpose(1, 2).flatten(2)
    heads = heads + torch.baddbmm(value_bias.unsqueeze(2), value, bias.unsqueeze(2)).mT
    return _finish(shape, "layers.0", params, class_token, heads)


def _attend_from(
    shape: ClassTokenShape,
    index: int,
    params: Params,
    queries: Float[Tensor, "members batch queries dim"],
    stream: Float[Tensor, "members batch tokens dim"],
) -> Float[Tensor, "members batch queries dim"]:
    """A layer in general: the queries attend to all tokens that are keys."""
    name = _layer_name(shape, index)
    attention = _attention(shape, index, params, queries, stream)
    value = _project(shape, index, params, "value", _keys(shape, stream))
    return _finish(shape, name, params, queries, (attention @ value).transpose(2, 3).flatten(3))


def _attention(
    shape: ClassTokenShape, index: int, params: Params, queries: Tensor, stream: Tensor
) -> Float[Tensor, "members batch heads queries keys"]:
    query = _project(shape, index, params, "query", queries) * _scale(shape, shape.layers[index])
    key = _project(shape, index, params, "key", _keys(shape, stream))
    return torch.softmax(query @ key.mT, -1)


def _project(
    shape: ClassTokenShape, index: int, params: Params, part: str, tokens: Tensor
) -> Float[Tensor, "members batch heads tokens size"]:
    projected = _linear(tokens, *_weights(params, f"{_layer_name(shape, index)}.{part}"))
    return projected.unflatten(-1, (shape.layers[index].heads, -1)).transpose(2, 3)


def _keys(shape: ClassTokenShape, stream: Tensor) -> Tensor:
    return stream if shape.class_token_is_key else stream[:, :, :-1]


def _layer_name(shape: ClassTokenShape, index: int) -> str:
    return f"layers.{index % len(shape.layers)}"


def _finish(
    shape: ClassTokenShape, name: str, params: Params, before: Tensor, heads: Tensor
) -> Tensor:
    """Output projection, then the residual connection and the layer norm where they are on."""
    mixed = _linear(heads, *_weights(params, f"{name}.out"))
    if shape.residual:
        mixed = before + mixed
    if not shape.norm:
        return mixed
    normalised = functional.layer_norm(mixed, (shape.embed_dim,))
    weight, bias = _weights(params, f"{name}.norm")
    axes = (slice(None), *[None] * (mixed.dim() - 2))
    return normalised * weight[axes] + bias[axes]


def _linear(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """weight[m]·x + bias[m] for every row x of member m, as one batched product."""
    if rows.dim() == 3:
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    return _linear(rows.flatten(1, -2), weight, bias).unflatten(1, rows.shape[1:-1])


def _activate(values: Tensor, activation: str) -> Tensor:
    return torch.relu_(values) if activation == "relu" else functional.gelu(values)


def _weights(params: Params, name: str) -> tuple[Tensor, Tensor]:
    return params[f"{name}.weight"], params[f"{name}.bias"]


def _adds_positions(shape: ClassTokenShape) -> bool:
    return shape.positions > 0 and shape.position_kind == "add"


def _scale(shape: ClassTokenShape, layer: AttentionShape) -> float:
    return 1 / sqrt(layer.qk_dim) if shape.scaled else 1.0


def _check(shape: ClassTokenShape, inputs: Tensor) -> None:
    dim, length = inputs.shape[-1], inputs.shape[-2]
    require(
        dim == shape.token_dim, f"tokens have {dim} numbers; the network takes {shape.token_dim}"
    )
    require(length >= 1, "a sequence has at least one token")
    require(
        not shape.positions or length <= shape.positions,
        f"the sequence has {length} tokens; the network has {shape.positions} positions",
    )
