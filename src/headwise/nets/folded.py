"""The class-token network's only layer, folded through the embedding: O(T), the same function.

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

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.nets.layers import Hidden, Params, activate, linear
from headwise.nets.pool import PoolByScore
from headwise.nets.shape import AttentionShape, MLPShape


def embed_hidden(
    params: Params,
    inputs: Float[Tensor, "#members batch length token_dim"],
    embed: MLPShape,
    positions: bool,
) -> Hidden:
    """The last hidden layer of the embedding, r_t; `positions` are concatenated to the tokens.

    The largest arrays of the network, so memory is what counts: the bias is a column of the
    first product, not an array to start from, and the activation works on the product itself,
    not on a view of it (of which autograd would keep, clear and copy the whole).
    """
    if not embed.widths:
        return inputs.expand(params["class_token"].shape[0], -1, -1, -1)
    weight, bias = params["embed.0.weight"], params["embed.0.bias"]
    tokens = functional.pad(inputs.flatten(1, 2), (0, 1), value=1.0)
    hidden = tokens.expand(len(weight), -1, -1) @ torch.cat([weight, bias.unsqueeze(2)], 2).mT
    if positions:
        here = params["positions"][:, : inputs.shape[2]]
        hidden = hidden + here.repeat(1, inputs.shape[1], 1)
    hidden = activate(hidden, embed.activation)
    for index in range(1, len(embed.widths)):
        hidden = activate(linear(hidden, params, f"embed.{index}"), embed.activation)
    return hidden.unflatten(1, inputs.shape[1:3])


def attend_folded(
    params: Params,
    layer: AttentionShape,
    hidden: Hidden,
    embedding: str,
    scale: float,
    class_token_is_key: bool,
) -> Float[Tensor, "members batch both"]:
    """The heads' outputs o_i side by side; `embedding` names the embedding's last map, W₂ and b₂.

    The layer is "layers.0"; `scale` multiplies its scores.
    """
    members, _, _, width = hidden.shape
    class_token = params["class_token"].unsqueeze(1)  # (members, 1, dim)
    weight, bias = params[f"{embedding}.weight"], params[f"{embedding}.bias"]
    columns = weight
    if class_token_is_key:
        columns = torch.cat([weight, class_token.mT - bias.unsqueeze(2)], 2)  # W: (members, dim, F)

    query = linear(class_token, params, "layers.0.query") * scale
    key = params["layers.0.key.weight"].unflatten(1, (layer.heads, layer.qk_dim))
    direction = (query.view(members, layer.heads, 1, -1) @ key).squeeze(2)  # u_i
    folded = direction @ columns  # Wᵀ u_i: (members, heads, F)
    if class_token_is_key:
        pooled, of_class = PoolByScore.apply(hidden, folded[..., :width], folded[..., width])
        pooled = torch.cat([pooled, of_class.unsqueeze(3)], 3)  # P_i: (members, batch, heads, F)
    else:
        never = folded.new_full(folded.shape[:2], -torch.inf)
        pooled, _ = PoolByScore.apply(hidden, folded, never)

    value, value_bias = params["layers.0.value.weight"], params["layers.0.value.bias"]
    of_columns = (value @ columns).unflatten(1, (layer.heads, layer.v_dim))  # W_V,i W
    heads = (pooled.transpose(1, 2) @ of_columns.mT).transpose(1, 2).flatten(2)
    return heads + torch.baddbmm(value_bias.unsqueeze(2), value, bias.unsqueeze(2)).mT
