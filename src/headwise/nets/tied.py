"""The plain network that a variant is at the class token: the same function, its weights tied.

One query, the class token c, makes all that a variant does to a head a fixed map. With u_j the
direction of map j, M the mixing of weights across heads (`combine`), g the gates:

    scores of map j:   (mix_scores u)_j · x̂_t
    output:            Σ_i W_O,i diag(g_i) W_V,i Σ_j M_ij m_j,      m_j = Σ_t a_j(t) x̂_t

That is plain attention with a head a map: its key map is the row (mix_scores u)_j, its query
1/√qk_dim, its values those of the heads i that read it, its output maps W_O,i diag(g_i) M_ij.
So a program for plain heads trains a variant: the gradients of these weights, carried back through
the few operations here, are the variant's own. (Not so where scores are no linear map of the keys.)
"""

from dataclasses import replace
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets.layers import Params, linear
from headwise.nets.pooled import PooledShape
from headwise.nets.sequence import HeadPooling
from headwise.nets.shape import AttentionShape
from headwise.nets.variants import Variant

_LAYER = "layers.0"


def plain_twin(shape: PooledShape) -> PooledShape:
    """The shape of the plain network that computes the same."""
    layer, variant = _heads(shape)
    readers = variant.readers(layer)
    twin = AttentionShape(heads=len(readers), qk_dim=1, v_dim=len(readers[0]) * layer.v_dim)
    return replace(shape, pooling=HeadPooling(layer=twin))


def fixed_params(shape: PooledShape) -> dict[str, Tensor]:
    """Those of the plain network's parameters that do not depend on the variant's."""
    layer, variant = _heads(shape)
    maps = variant.maps(layer)[0]
    return {
        f"{_LAYER}.query.weight": torch.zeros(maps, shape.embed_dim),
        f"{_LAYER}.query.bias": torch.full((maps,), 1 / sqrt(layer.qk_dim), dtype=torch.float64),
        f"{_LAYER}.key.bias": torch.zeros(maps),
    }


def twin_params(shape: PooledShape, params: Params) -> dict[str, Tensor]:
    """The plain network's other parameters, as functions of the variant's.

    Once a step for all members: what counts is how few operations these are.
    """
    layer, variant = _heads(shape)
    readers = variant.readers(layer)
    copies = len(readers) * len(readers[0]) // layer.heads  # of every head's value and output map
    value, bias = params[f"{_LAYER}.value.weight"], params[f"{_LAYER}.value.bias"]
    passing = {name: params[name] for name in params if not name.startswith(f"{_LAYER}.")}
    return {
        **passing,
        f"{_LAYER}.key.weight": _directions(shape, params),
        f"{_LAYER}.value.weight": value if copies == 1 else value.repeat(1, copies, 1),
        f"{_LAYER}.value.bias": bias if copies == 1 else bias.repeat(1, copies),
        f"{_LAYER}.out.weight": _output_maps(shape, params),
        f"{_LAYER}.out.bias": params[f"{_LAYER}.out.bias"],
    }


def _directions(shape: PooledShape, params: Params) -> Float[Tensor, "members maps dim"]:
    """What each map scores tokens by, times √qk_dim."""
    layer, variant = _heads(shape)
    maps = variant.maps(layer)[0]
    query = linear(params["class_token"].unsqueeze(1), params, f"{_LAYER}.query")
    key = params[f"{_LAYER}.key.weight"]
    members, _, dim = key.shape
    each = query.view(-1, 1, layer.qk_dim) @ key.reshape(-1, layer.qk_dim, dim)
    return variant.mix_scores(params, _LAYER, each.view(members, 1, maps, 1, dim)).flatten(1, 3)


def _output_maps(shape: PooledShape, params: Params) -> Float[Tensor, "members dim both"]:
    """W_O,i diag(g_i) M_ij, map j after map j, for each head i that reads it."""
    layer, variant = _heads(shape)
    out = params[f"{_LAYER}.out.weight"]
    members, dim, both = out.shape
    if type(variant).gate is not Variant.gate:
        ones = out.new_ones(members, 1, layer.heads, 1, layer.v_dim)
        gates = variant.gate(params, _LAYER, params["class_token"][:, None, None], ones)
        out = out * gates.reshape(members, 1, both)
    if type(variant).combine is Variant.combine:
        return out
    maps = variant.maps(layer)[0]
    unit = (
        torch.eye(maps, dtype=out.dtype).view(1, 1, maps, 1, maps).expand(members, -1, -1, -1, -1)
    )
    mixing = variant.combine(params, _LAYER, unit).view(members, layer.heads, maps)  # M
    if len(variant.readers(layer)[0]) == layer.heads:  # every head reads every map
        return (
            out.reshape(members, dim, 1, layer.heads, -1) * mixing.mT[:, None, ..., None]
        ).flatten(2)
    taken = mixing.unflatten(2, (-1, layer.heads)).diagonal(dim1=1, dim2=3)  # of its own maps
    return (out.reshape(members, dim, 1, layer.heads, -1) * taken[:, None, ..., None]).flatten(2)


def _heads(shape: PooledShape) -> tuple[AttentionShape, Variant]:
    assert isinstance(shape.pooling, HeadPooling)
    return shape.pooling.layer, shape.pooling.mechanism
