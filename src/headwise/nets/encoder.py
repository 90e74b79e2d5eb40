"""Encoders: layers of attention and feed-forward network, as one function of stacked parameters.

The rank paper's encoder is post-norm and differs from the usual one in two ways: a layer averages
w parallel attention modules, so it has w·width/rank heads; and instead of a layer norm a token is
scaled to length one and multiplied by one learned number. A module's attention has 4·width²
weights whatever the rank of its heads: sweeping the rank leaves the parameters as they are.
"""

from collections.abc import Callable
from math import sqrt
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets.attention import (
    Kind,
    attend,
    causal_mask,
    fits_compiled,
    project,
    read_heads,
)
from headwise.nets.base import LayeredShape, Net
from headwise.nets.compiled import Compiled, Norm, compiled_for, normal, read_one
from headwise.nets.layers import (
    ParameterShapes,
    Params,
    Stream,
    check_tokens,
    linear,
    linear_shapes,
    merge_heads,
)
from headwise.nets.shape import AttentionShape

Inner = Callable[[Params, str, Tensor], Tensor]


@spec
class EncoderShape(LayeredShape):
    """An encoder. `layers` counts all heads of a layer; each of its `modules` has an equal share.

    norm "length": token → token/‖token‖ × one learned number; "layer": layer norm; "none". keys
    "all"; "earlier": a token sees itself and those before (a causal mask); "others": all tokens but
    the last, which is only a query (the cross form of a task). With `maps`, linear maps lead from
    the token into the stream and out of it; without, the stream is `token_dim` wide and the first
    `outputs` coordinates answer. `positions` is 0 or the length of a learned table that is added.
    `norm_first` puts the norm before each sub-layer, and one at the end.
    """

    token_dim: int
    outputs: int
    width: int
    layers: tuple[AttentionShape, ...]
    ffn: int
    modules: int = 1
    norm: Literal["length", "layer", "none"] = "length"
    norm_first: bool = False
    kind: Kind = "softmax"
    keys: Literal["all", "earlier", "others"] = "all"
    maps: bool = False
    positions: int = 0

    def __post_init__(self) -> None:
        for name in ("token_dim", "outputs", "width", "modules"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(len(self.layers) >= 1, "an encoder has at least one layer")
        require(self.ffn >= 0, "ffn is the width of the feed-forward network, or 0 for none")
        require(self.norm in ("length", "layer", "none"), "norm is 'length', 'layer' or 'none'")
        require(self.keys in ("all", "earlier", "others"), "keys are 'all', 'earlier' or 'others'")
        require(self.kind in ("softmax", "hardmax"), "kind is 'softmax' or 'hardmax'")
        require(self.positions >= 0, "positions is 0 (none) or a number of positions")
        require(
            all(layer.heads % self.modules == 0 for layer in self.layers),
            f"the heads of a layer are shared out over {self.modules} modules: a multiple of it",
        )
        require(
            self.maps or (self.width == self.token_dim and self.outputs <= self.width),
            "without linear maps the width is the token's, and outputs are no more than that",
        )

    @classmethod
    def paper(
        cls,
        *,
        token_dim: int,
        rank: int,
        layers: int = 1,
        modules: int = 1,
        ffn: int = 2048,
        outputs: int | None = None,
    ) -> "EncoderShape":
        """The rank paper's encoder: modules·token_dim/rank heads of rank `rank` in each layer."""
        require(layers >= 1, f"layers is {layers}; the least is 1")
        layer = _share_width(token_dim, rank, modules)
        return cls(
            token_dim=token_dim,
            outputs=token_dim if outputs is None else outputs,
            width=token_dim,
            layers=(layer,) * layers,
            ffn=ffn,
            modules=modules,
        )

    @classmethod
    def plain(
        cls,
        *,
        token_dim: int,
        outputs: int,
        width: int,
        heads: int,
        layers: int,
        ffn: int,
        norm_first: bool = True,
        keys: Literal["all", "earlier", "others"] = "all",
        positions: int = 0,
    ) -> "EncoderShape":
        """The usual encoder: layer norms, `heads` heads of width/heads dimensions each."""
        require(layers >= 1, f"layers is {layers}; the least is 1")
        require(
            heads >= 1 and width % heads == 0, f"a width of {width} is no multiple of {heads} heads"
        )
        return cls(
            token_dim=token_dim,
            outputs=outputs,
            width=width,
            layers=(_share_width(width, width // heads, 1),) * layers,
            ffn=ffn,
            norm="layer",
            norm_first=norm_first,
            keys=keys,
            maps=True,
            positions=positions,
        )

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        shapes = ParameterShapes()

        def norm(name: str) -> None:
            if self.norm != "none":
                shapes[f"{name}.weight"] = (self.width if self.norm == "layer" else 1,)
            if self.norm == "layer":
                shapes[f"{name}.bias"] = (self.width,)

        if self.maps:
            shapes |= linear_shapes("into", self.width, self.token_dim)
        if self.positions:
            shapes["positions"] = (self.positions, self.width)
        for index, layer in enumerate(self.layers):
            rows = layer.heads * (2 * layer.qk_dim + layer.v_dim)
            shapes |= linear_shapes(f"layers.{index}.qkv", rows, self.width)
            shapes |= linear_shapes(f"layers.{index}.out", self.width, layer.heads * layer.v_dim)
            norm(f"layers.{index}.norm1")
            if self.ffn:
                shapes |= linear_shapes(f"layers.{index}.up", self.ffn, self.width)
                shapes |= linear_shapes(f"layers.{index}.down", self.width, self.ffn)
                norm(f"layers.{index}.norm2")
        if self.norm_first:
            norm("norm")
        if self.maps:
            shapes |= linear_shapes("readout", self.outputs, self.width)
        return shapes

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights: torch's own distributions for its encoder, module by module; biases 0."""
        rng = np.random.default_rng([seed, 0xE2C0])
        params = {}
        for name, size in self.parameter_shapes().items():
            values: np.ndarray = np.zeros(size)
            if "norm" in name and name.endswith(".weight"):
                values = np.ones(size)
            elif name == "positions":
                values = 0.02 * rng.standard_normal(size)
            elif name.endswith(".weight"):
                fan_in = size[1] // (self.modules if ".out." in name else 1)
                bound = sqrt(6 / (4 * fan_in)) if ".qkv." in name else 1 / sqrt(fan_in)
                values = rng.uniform(-bound, bound, size)
            params[name] = torch.from_numpy(values.astype(np.float32))
        return params

    def forward(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch length outputs"]:
        """An output for every token."""
        self._check(inputs)
        members = params["layers.0.qkv.weight"].shape[0]
        stream = linear(inputs, params, "into") if self.maps else inputs.expand(members, -1, -1, -1)
        if self.positions:
            stream = stream + params["positions"][:, None, : inputs.shape[2]]
        for index in range(len(self.layers)):
            stream = self._sub_layer(params, stream, f"layers.{index}", "norm1", self._attention)
            if self.ffn:
                stream = self._sub_layer(params, stream, f"layers.{index}", "norm2", _feed_forward)
        if self.maps and self.outputs == 1:
            norm = self._norm_of(params, "norm") if self.norm_first else None
            return read_one(stream, params["readout.weight"], params["readout.bias"], norm)
        if self.norm_first:
            stream = self._norm(params, "norm", stream)
        return linear(stream, params, "readout") if self.maps else stream[..., : self.outputs]

    @property
    def summed(self) -> frozenset[str]:
        """Matrices with which nothing is multiplied: sums in one order take a product's place."""
        return frozenset({"readout.weight"} if self.maps and self.outputs == 1 else ())

    def _sub_layer(
        self, params: Params, stream: Stream, layer: str, norm: str, inner: Inner
    ) -> Stream:
        """Residual connection and norm around attention or feed-forward network."""
        steps, heads = compiled_for(stream), self.layers[int(layer.split(".")[1])]
        written_out = self.norm != "none" and self.kind == "softmax"
        if steps is not None and written_out and fits_compiled(stream.shape[2], heads):
            return self._compiled_sub_layer(steps, params, stream, layer, norm, heads)
        if self.norm_first:
            return stream + inner(params, layer, self._norm(params, f"{layer}.{norm}", stream))
        return self._norm(params, f"{layer}.{norm}", stream + inner(params, layer, stream))

    def _compiled_sub_layer(
        self,
        steps: Compiled,
        params: Params,
        stream: Stream,
        layer: str,
        norm: str,
        heads: AttentionShape,
    ) -> Stream:
        """The same in one step of autograd."""
        reads = norm == "norm1"
        into, out = (
            (params[f"{layer}.{name}.weight"], params[f"{layer}.{name}.bias"])
            for name in (("qkv", "out") if reads else ("up", "down"))
        )
        return steps.sub_layer(
            stream,
            into,
            out,
            self._norm_of(params, f"{layer}.{norm}"),
            norm_first=self.norm_first,
            heads=(heads.heads, heads.qk_dim, heads.v_dim) if reads else None,
            keys=stream.shape[2] - (self.keys == "others"),
            causal=self.keys == "earlier",
            modules=self.modules if reads else 1,
        )

    def _norm(self, params: Params, name: str, stream: Stream) -> Stream:
        norm = self._norm_of(params, name)
        return stream if norm is None else normal(stream, *norm)

    def _norm_of(self, params: Params, name: str) -> Norm | None:
        if self.norm == "none":
            return None
        return self.norm, params[f"{name}.weight"], params.get(f"{name}.bias")

    def _attention(self, params: Params, name: str, stream: Stream) -> Stream:
        layer = self.layers[int(name.split(".")[1])]
        length, causal = stream.shape[2], self.keys == "earlier"
        keys = length - (self.keys == "others")
        if self.kind == "softmax":
            rows = linear(stream, params, f"{name}.qkv")
            mixed = read_heads(rows, layer, keys=keys, causal=causal)
        else:
            query, key, value = project(stream, params, name, layer)
            mask = causal_mask(0, length, stream.device) if causal else None
            query = query * (1 / sqrt(layer.qk_dim))
            weights = attend(query, key[..., :keys, :], self.kind, mask)
            mixed = merge_heads(weights @ value[..., :keys, :])
        if self.modules > 1:  # the mean over modules, each of which has an equal share of the heads
            mixed = mixed / self.modules
        return linear(mixed, params, f"{name}.out")

    def _check(self, inputs: Float[Tensor, "#members batch length token_dim"]) -> None:
        require(inputs.shape[2] > (self.keys == "others"), "a sequence has at least one key")
        check_tokens(inputs, self.token_dim, self.positions, "encoder")


def _feed_forward(params: Params, name: str, stream: Stream) -> Stream:
    return linear(functional.relu(linear(stream, params, f"{name}.up")), params, f"{name}.down")


def _share_width(width: int, rank: int, modules: int) -> AttentionShape:
    require(
        1 <= rank <= width and width % rank == 0,
        f"heads of rank {rank} cannot share a width of {width}: it must be a multiple",
    )
    return AttentionShape(heads=modules * (width // rank), qk_dim=rank, v_dim=rank)


class EncoderNet(Net[EncoderShape]):
    """An encoder: the rank paper's, or a plain one."""

    shape_type = EncoderShape
    described = "encoder"
