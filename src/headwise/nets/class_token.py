"""The class-token network, as one function of stacked parameters.

Every parameter has a leading axis of members, so many networks of one shape are one program; a
single network is the case of one member. With r_t the last hidden layer of the embedding, a token
is x̂_t = W₂ r_t + b₂. In the last (for one layer: the only) attention layer the query is the class
token c alone, so with the key and value maps folded through W₂

    u_i = W_K,iᵀ (W_Q,i c + b_Q,i) / √qk_dim                    one vector a head
    score_i(t) = (W₂ᵀ u_i)·r_t,  class token: u_i·(c − b₂)      up to a constant, which cancels
    P_i = Σ_t a_i(t) r_t,  p_i = weight of the class token      pooling comes before the value map
    o_i = W_V,i (W₂ P_i + b₂ + p_i (c − b₂)) + b_V,i

which costs O(T) and is the same function of the same, separately trained, parameters. The key
bias adds a constant to each score and cancels.
"""

from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.errors import require
from headwise.nets.shape import AttentionShape, ClassTokenShape

Params = Mapping[str, Tensor]


class Embedded(NamedTuple):
    """Tokens as a linear map of something narrower: x̂_t = weight·hidden_t + bias."""

    hidden: Float[Tensor, "members batch length hidden"]
    weight: Float[Tensor, "members dim hidden"]
    bias: Float[Tensor, "members dim"]

    def tokens(self) -> Float[Tensor, "members batch length dim"]:
        return _linear(self.hidden, self.weight, self.bias)


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
    return _attend_from_class_token(shape, params, *_before_last_layer(shape, params, inputs))


def attention_weights(
    shape: ClassTokenShape,
    params: Params,
    inputs: Float[Tensor, "#members batch length token_dim"],
) -> Float[Tensor, "members batch length heads"]:
    """How much each head of the last layer takes of each token (the class token has the rest)."""
    class_token, embedded = _before_last_layer(shape, params, inputs)
    direction = _direction(shape, params, class_token)
    return _attention(shape, direction, class_token, embedded)[0]


def _before_last_layer(
    shape: ClassTokenShape, params: Params, inputs: Tensor
) -> tuple[Float[Tensor, "members rows dim"], Embedded]:
    """Class token and tokens as the last layer finds them."""
    _check(shape, inputs)
    embedded = _embed(shape, params, inputs)
    class_token = params["class_token"].unsqueeze(1)  # (members, 1, dim)
    if len(shape.layers) > 1:
        start = class_token.unsqueeze(1).expand(-1, inputs.shape[1], 1, -1)
        stream = torch.cat([embedded.tokens(), start], 2)  # (members, batch, length + 1, dim)
        for index in range(len(shape.layers) - 1):
            stream = _attend_everywhere(shape, index, params, stream)
        class_token = stream[:, :, -1]  # (members, batch, dim)
        embedded = _as_embedded(stream[:, :, :-1])
    return class_token, embedded


def readout(
    shape: ClassTokenShape, params: Params, hidden: Float[Tensor, "members batch dim"]
) -> Float[Tensor, "members batch outputs"]:
    """The MLP that reads the class token."""
    last = len(shape.readout.widths)
    for index in range(last):
        hidden = _linear(hidden, *_weights(params, f"readout.{index}"))
        hidden = _activate(hidden, shape.readout.activation)
    return _linear(hidden, *_weights(params, f"readout.{last}"))


def _embed(shape: ClassTokenShape, params: Params, inputs: Tensor) -> Embedded:
    members, length = params["class_token"].shape[0], inputs.shape[2]
    hidden = inputs.expand(members, -1, -1, -1)
    last = len(shape.embed.widths)
    for index in range(last):
        hidden = _linear(hidden, *_weights(params, f"embed.{index}"))
        if index == 0 and shape.positions and shape.position_kind == "concat":
            hidden = hidden + params["positions"][:, None, :length]
        hidden = _activate(hidden, shape.embed.activation)
    embedded = Embedded(hidden, *_weights(params, f"embed.{last}"))
    if shape.positions and shape.position_kind == "add":
        return _as_embedded(embedded.tokens() + params["positions"][:, None, :length])
    return embedded


def _attend_from_class_token(
    shape: ClassTokenShape,
    params: Params,
    class_token: Float[Tensor, "members rows dim"],
    embedded: Embedded,
) -> Float[Tensor, "members batch dim"]:
    """The last layer; `rows` is 1 (one class token for all inputs) or the batch size."""
    layer, name = shape.layers[-1], f"layers.{len(shape.layers) - 1}"
    hidden, weight, bias = embedded
    value = params[f"{name}.value.weight"].unflatten(1, (layer.heads, layer.v_dim))
    value_bias = params[f"{name}.value.bias"].unflatten(1, (layer.heads, layer.v_dim))
    direction = _direction(shape, params, class_token)
    attention, class_weight = _attention(shape, direction, class_token, embedded)
    shift = class_token - bias.unsqueeze(1)  # c − b₂

    pooled = attention.mT @ hidden  # P_i: (members, batch, heads, hidden)
    value_of_hidden = torch.einsum("mhve,mef->mhvf", value, weight)
    head = torch.einsum("mbhf,mhvf->mbhv", pooled, value_of_hidden)
    head = head + class_weight * torch.einsum("mhve,mre->mrhv", value, shift)
    head = head + (torch.einsum("mhve,me->mhv", value, bias) + value_bias).unsqueeze(1)
    return _finish(shape, name, params, class_token, head.flatten(2))


def _direction(
    shape: ClassTokenShape, params: Params, class_token: Float[Tensor, "members rows dim"]
) -> Float[Tensor, "members rows heads dim"]:
    """u_i = W_K,iᵀ (W_Q,i c + b_Q,i) / √qk_dim."""
    layer, name = shape.layers[-1], f"layers.{len(shape.layers) - 1}"
    query = _linear(class_token, *_weights(params, f"{name}.query"))
    key = params[f"{name}.key.weight"].unflatten(1, (layer.heads, layer.qk_dim))
    query = query.unflatten(2, (layer.heads, layer.qk_dim)) * _scale(shape, layer)
    return torch.einsum("mrhq,mhqe->mrhe", query, key)


def _attention(
    shape: ClassTokenShape, direction: Tensor, class_token: Tensor, embedded: Embedded
) -> tuple[Float[Tensor, "members batch length heads"], Tensor]:
    """The last layer's attention to the tokens, and to the class token (0 where it is no key)."""
    hidden, weight, bias = embedded
    folded = torch.einsum("mrhe,mef->mrhf", direction, weight)  # W₂ᵀ u_i
    if folded.shape[1] == 1:  # one matrix product for all sequences
        logits = (hidden.flatten(1, 2) @ folded[:, 0].mT).unflatten(1, hidden.shape[1:3])
    else:
        logits = hidden @ folded.mT  # (members, batch, length, heads)
    if not shape.class_token_is_key:
        return torch.softmax(logits, 2), logits.new_zeros(1)
    class_logit = torch.einsum("mrhe,mre->mrh", direction, class_token - bias.unsqueeze(1))
    class_logit = class_logit.unsqueeze(2).expand(-1, hidden.shape[1], 1, -1)
    attention = torch.softmax(torch.cat([logits, class_logit], 2), 2)
    return attention[:, :, :-1], attention[:, :, -1].unsqueeze(-1)


def _attend_everywhere(
    shape: ClassTokenShape,
    index: int,
    params: Params,
    stream: Float[Tensor, "members batch tokens dim"],
) -> Float[Tensor, "members batch tokens dim"]:
    """An inner layer: every token, the class token last, attends to all that are keys."""
    layer, name = shape.layers[index], f"layers.{index}"
    keys = stream if shape.class_token_is_key else stream[:, :, :-1]

    def project(tokens: Tensor, part: str, size: int) -> Float[Tensor, "members batch h t size"]:
        projected = _linear(tokens, *_weights(params, f"{name}.{part}"))
        return projected.unflatten(-1, (layer.heads, size)).transpose(2, 3)

    query = project(stream, "query", layer.qk_dim) * _scale(shape, layer)
    attention = torch.softmax(query @ project(keys, "key", layer.qk_dim).mT, -1)
    head = (attention @ project(keys, "value", layer.v_dim)).transpose(2, 3)
    return _finish(shape, name, params, stream, head.flatten(3))


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
    flat = rows.flatten(1, -2)
    return torch.baddbmm(bias.unsqueeze(1), flat, weight.mT).unflatten(1, rows.shape[1:-1])


def _activate(values: Tensor, activation: str) -> Tensor:
    return functional.relu(values) if activation == "relu" else functional.gelu(values)


def _weights(params: Params, name: str) -> tuple[Tensor, Tensor]:
    return params[f"{name}.weight"], params[f"{name}.bias"]


def _as_embedded(tokens: Tensor) -> Embedded:
    """Tokens that are already formed: the linear map is the identity."""
    members, dim = tokens.shape[0], tokens.shape[-1]
    identity = torch.eye(dim, dtype=tokens.dtype, device=tokens.device)
    return Embedded(tokens, identity.expand(members, -1, -1), tokens.new_zeros(members, dim))


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
