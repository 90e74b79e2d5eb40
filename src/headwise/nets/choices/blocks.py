"""Pre-norm transformer layers as functions of stacked parameters, with torch's fused attention.

A layer norm's gain γ and shift β are folded into the map that reads it:
W(γ ⊙ x + β) + b = (W diag γ) x + (b + Wβ). So they cost a product of the size of the weights, and
no pass over all tokens. Dropout is on what is written into the stream, not on attention weights,
for which the fused kernel has no fast path on a CPU (and which the hub's ViT leaves alone, too).
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from headwise.nets.attention import project
from headwise.nets.base import LayeredShape
from headwise.nets.compiled import gelu
from headwise.nets.layers import ParameterShapes, Params, linear, linear_shapes, merge_heads
from headwise.nets.shape import AttentionShape

Drop = Callable[[Tensor], Tensor]
"""Dropout: some entries are zeroed, the others grow; in evaluation nobody calls it."""

_EPSILON = 1e-12  # of the norms, as in the hub's BERT and ViT


def keep_all(stream: Tensor) -> Tensor:
    """No dropout."""
    return stream


def norm_shapes(name: str, width: int) -> ParameterShapes:
    """Gain and shift of a layer norm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def block_shapes(name: str, width: int, layer: AttentionShape, ffn: int) -> ParameterShapes:
    """The parameters of a layer."""
    rows = layer.heads * (2 * layer.qk_dim + layer.v_dim)
    shapes = norm_shapes(f"{name}.norm1", width)
    shapes |= linear_shapes(f"{name}.qkv", rows, width)
    shapes |= linear_shapes(f"{name}.out", width, layer.heads * layer.v_dim)
    shapes |= norm_shapes(f"{name}.norm2", width)
    shapes |= linear_shapes(f"{name}.up", ffn, width)
    shapes |= linear_shapes(f"{name}.down", width, ffn)
    return shapes


def block(
    params: Params,
    name: str,
    layer: AttentionShape,
    stream: Float[Tensor, "members batch tokens width"],
    keys: Bool[Tensor, "#members batch tokens"] | None = None,
    drop: Drop = keep_all,
) -> Float[Tensor, "members batch tokens width"]:
    """One layer: attention and feed-forward network, each behind a norm and added to the stream.

    `keys` says which tokens may be attended to; all, where it is None.
    """
    attention = _attention(params, name, layer, stream, keys)
    stream = stream + drop(linear(attention, params, f"{name}.out"))
    hidden = gelu(normed_linear(stream, params, f"{name}.norm2", f"{name}.up"))
    return stream + drop(linear(hidden, params, f"{name}.down"))


def normed_linear(
    stream: Float[Tensor, "members *batch width"], params: Params, norm: str, name: str
) -> Float[Tensor, "members *batch out"]:
    """The linear map `name` of the layer norm `norm` of the stream."""
    normal = functional.layer_norm(stream, stream.shape[-1:], eps=_EPSILON)
    return linear(normal, _folded(params, norm, name), name)


class BlockShape(LayeredShape):
    """A network of such layers."""

    width: int
    ffn: int

    def layer_shapes(self) -> ParameterShapes:
        """The parameters of all layers."""
        shapes = ParameterShapes()
        for index, layer in enumerate(self.layers):
            shapes |= block_shapes(f"layers.{index}", self.width, layer, self.ffn)
        return shapes

    def run_layers(
        self, params: Params, stream: Tensor, drop: Drop, keys: Tensor | None = None
    ) -> Float[Tensor, "members batch tokens width"]:
        """The stream after all layers."""
        for index, layer in enumerate(self.layers):
            stream = block(params, f"layers.{index}", layer, stream, keys, drop)
        return stream

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights: a function of shape and seed, equal on every machine."""
        return fresh_params(self.parameter_shapes(), seed, len(self.layers))


def fresh_params(shapes: ParameterShapes, seed: int, depth: int) -> dict[str, Tensor]:
    """Fresh weights: norms 1, biases 0, tables N(0, 0.02²), maps N(0, 1/inputs).

    What is written into the stream is divided by √(2·depth), so that it does not grow with depth.
    """
    rng = np.random.default_rng([seed, 0xB10C])
    params = {}
    for name, size in shapes.items():
        values: np.ndarray = np.zeros(size, np.float32)
        if ".norm" in f".{name}" and name.endswith(".weight"):
            values = np.ones(size, np.float32)
        elif name.endswith(".weight"):
            values = rng.standard_normal(size, np.float32) / np.float32(sqrt(size[1]))
            if name.endswith((".out.weight", ".down.weight")):
                values /= np.float32(sqrt(2 * depth))
        elif not name.endswith(".bias"):
            values = np.float32(0.02) * rng.standard_normal(size, np.float32)
        params[name] = torch.from_numpy(values)
    return params


def _folded(params: Params, norm: str, name: str) -> Params:
    gain, shift = params[f"{norm}.weight"], params[f"{norm}.bias"]
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    return {
        f"{name}.weight": weight * gain[:, None],
        f"{name}.bias": bias + (weight @ shift[..., None]).squeeze(-1),
    }


def _attention(
    params: Params,
    name: str,
    layer: AttentionShape,
    stream: Float[Tensor, "members batch tokens width"],
    keys: Bool[Tensor, "#members batch tokens"] | None,
) -> Float[Tensor, "members batch tokens values"]:
    normal = functional.layer_norm(stream, stream.shape[-1:], eps=_EPSILON)
    folded = _folded(params, f"{name}.norm1", f"{name}.qkv")
    query, key, value = (part.flatten(0, 1) for part in project(normal, folded, name, layer))
    mask = None
    if keys is not None:
        mask = keys.expand(*stream.shape[:2], -1).flatten(0, 1)[:, None, None]
    mixed = functional.scaled_dot_product_attention(query, key, value, mask)
    return merge_heads(mixed.unflatten(0, stream.shape[:2]))
