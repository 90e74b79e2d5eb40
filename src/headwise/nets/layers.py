"""Linear maps and heads as functions of stacked parameters: the pieces all networks share.

Every parameter has a leading axis of members, so that many networks of one shape are one program;
a single network is the case of one member.
"""

import itertools
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.nets.shape import MLPShape

Params = Mapping[str, Tensor]
"""Name → parameter, with the axis of members first."""

ParameterShapes = dict[str, tuple[int, ...]]
"""Name → shape of a parameter of one network, without the axis of members."""

Hidden = Float[Tensor, "members batch length hidden"]
"""The last hidden layer of the embedding of a sequence's tokens."""

Stream = Float[Tensor, "members batch length width"]
"""The tokens of sequences as a layer finds them."""


def linear_shapes(name: str, out: int, into: int) -> ParameterShapes:
    """The parameters of a linear map with a bias."""
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def mlp_shapes(name: str, sizes: Sequence[int]) -> ParameterShapes:
    """The parameters of linear maps in a row, from sizes[0] to sizes[-1]."""
    shapes = ParameterShapes()
    for index, (into, out) in enumerate(itertools.pairwise(sizes)):
        shapes |= linear_shapes(f"{name}.{index}", out, into)
    return shapes


def linear(
    rows: Float[Tensor, "#members *batch into"], params: Params, name: str
) -> Float[Tensor, "members *batch out"]:
    """weight[m]·x + bias[m] for every row x of member m, as one batched product."""
    weight, bias = params[f"{name}.weight"], params.get(f"{name}.bias")
    flat = rows.flatten(1, -2).expand(weight.shape[0], -1, -1)
    product = flat @ weight.mT if bias is None else torch.baddbmm(bias[:, None], flat, weight.mT)
    # No view where none is needed: an activation in place would have to copy what is behind it.
    return product if rows.dim() == 3 else product.unflatten(1, rows.shape[1:-1])


def look_up(
    table: Float[Tensor, "members vocabulary width"], tokens: Int[Tensor, "#members batch length"]
) -> Stream:
    """Every member's rows for its tokens (or for tokens that all share)."""
    members, vocabulary, _ = table.shape
    first = torch.arange(members, device=table.device)[:, None, None] * vocabulary
    return functional.embedding(tokens + first, table.flatten(0, 1))


def activate(
    values: Float[Tensor, "members *batch width"], activation: str
) -> Float[Tensor, "members *batch width"]:
    """ReLU, in place, or GELU."""
    return torch.relu_(values) if activation == "relu" else functional.gelu(values)


def mlp(
    rows: Float[Tensor, "members *batch into"], params: Params, name: str, shape: MLPShape
) -> Float[Tensor, "members *batch out"]:
    """Hidden layers with their activation, and a last linear map."""
    last = len(shape.widths)
    for index in range(last):
        rows = activate(linear(rows, params, f"{name}.{index}"), shape.activation)
    return linear(rows, params, f"{name}.{last}")


def split_heads(
    projected: Float[Tensor, "members batch tokens both"], heads: int, size: int
) -> Float[Tensor, "members batch heads tokens size"]:
    """Head h reads its own `size` coordinates."""
    return projected.unflatten(-1, (heads, size)).transpose(2, 3)


def merge_heads(
    mixed: Float[Tensor, "members batch heads tokens size"],
) -> Float[Tensor, "members batch tokens both"]:
    """The inverse of `split_heads`: all heads' outputs side by side."""
    return mixed.transpose(2, 3).flatten(3)


def check_tokens(
    inputs: Float[Tensor, "*batch length dim"], token_dim: int, positions: int, net: str
) -> None:
    """Refuse tokens that the `net` does not take; it has so many positions, or (0) any number."""
    length, dim = inputs.shape[-2:]
    require(dim == token_dim, f"tokens have {dim} numbers; the {net} takes {token_dim}")
    require(
        not positions or length <= positions,
        f"the sequence has {length} tokens; the {net} has {positions} positions",
    )
