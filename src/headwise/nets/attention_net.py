"""One attention layer whose heads, rank and value dimension are all free.

A(X, y) = Σ_h O_h V_h X φ_h,   φ_h = softmax or hardmax over i of (⟨Q_h y, K_h x_i⟩·scale + b_h,i)

with Q_h, K_h of `qk_dim` rows (the head's rank). As everywhere, parameters have a leading axis of
members: many layers of one shape are one program.
"""

from math import prod, sqrt
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets.attention import Kind, attend
from headwise.nets.base import Net
from headwise.nets.layers import ParameterShapes, Params, linear, merge_heads, split_heads
from headwise.nets.shape import AttentionShape


@spec
class AttentionNetShape:
    """A single layer, and nothing else: no residual connection, no norm.

    query "last": the last token is the query and the others are keys (the cross form of a task);
    "each": every token is a query for all tokens. values "factored": O_h V_h with V_h of `v_dim`
    rows, so of full rank if v_dim is the token's dimension; "scalar": a number a_h for each head,
    O_h V_h = a_h·I (v_dim is then the token's dimension). `biases` adds biases to the four maps,
    `position_bias` a learned score b_h,i for each head and each of so many positions. `scaled`
    divides scores by √qk_dim.
    """

    token_dim: int
    outputs: int
    layer: AttentionShape
    kind: Kind = "softmax"
    values: Literal["factored", "scalar"] = "factored"
    query: Literal["last", "each"] = "last"
    biases: bool = False
    position_bias: int = 0
    scaled: bool = True

    def __post_init__(self) -> None:
        for name in ("token_dim", "outputs"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(self.kind in ("softmax", "hardmax"), "kind is 'softmax' or 'hardmax'")
        require(self.values in ("factored", "scalar"), "values are 'factored' or 'scalar'")
        require(self.query in ("last", "each"), "query is 'last' or 'each'")
        require(self.position_bias >= 0, "position_bias is 0 (none) or a number of positions")
        require(
            self.values == "factored" or self.outputs == self.token_dim == self.layer.v_dim,
            "scalar values keep the dimension: outputs and v_dim must be the token's",
        )

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """The attention layers, for tables."""
        return (self.layer,)

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        layer, shapes = self.layer, ParameterShapes()
        sizes = {
            "query": (layer.heads * layer.qk_dim, self.token_dim),
            "key": (layer.heads * layer.qk_dim, self.token_dim),
            "value": (layer.heads * layer.v_dim, self.token_dim),
            "out": (self.outputs, layer.heads * layer.v_dim),
        }
        if self.values == "scalar":
            sizes = {"query": sizes["query"], "key": sizes["key"]}
            shapes["mix"] = (layer.heads,)
        for name, size in sizes.items():
            shapes[f"{name}.weight"] = size
            if self.biases:
                shapes[f"{name}.bias"] = size[:1]
        if self.position_bias:
            shapes["position_bias"] = (layer.heads, self.position_bias)
        return shapes

    def params(self) -> dict[str, int]:
        """How many parameters; all of them are attention's."""
        total = sum(prod(size) for size in self.parameter_shapes().values())
        return {"attention": total, "total": total}

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights: uniform maps of Xavier's or torch's bound, biases zero, a_h = ±1/√heads.

        The signs alternate: heads of equal sign could only average their points.
        """
        rng = np.random.default_rng([seed, 0xA77E])
        params = {}
        for name, size in self.parameter_shapes().items():
            values: np.ndarray = np.zeros(size)
            if name == "mix":
                values = np.where(np.arange(size[0]) % 2, -1, 1) / sqrt(size[0])
            elif name.endswith(".weight"):
                bound = sqrt(3 / size[1]) if name != "out.weight" else 1 / sqrt(size[1])
                values = rng.uniform(-bound, bound, size)
            params[name] = torch.from_numpy(values.astype(np.float32))
        return params

    def forward(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch asking outputs"]:
        """The layer's outputs: of the last token where it is the query, else of each."""
        self._check(inputs)
        last = self.query == "last"
        asking, keys = (inputs[:, :, -1:], inputs[:, :, :-1]) if last else (inputs, inputs)
        scale = 1 / sqrt(self.layer.qk_dim) if self.scaled else 1.0
        bias = params["position_bias"][:, None, :, None] if self.position_bias else None
        weights = attend(
            self._project(params, "query", asking, self.layer.qk_dim) * scale,
            self._project(params, "key", keys, self.layer.qk_dim),
            self.kind,
            bias if bias is None else bias[..., : keys.shape[2]],
        )  # (members, batch, heads, asking, keys)
        if self.values == "scalar":
            return torch.einsum("mbhij,mh->mbij", weights, params["mix"]) @ keys
        mixed = weights @ self._project(params, "value", keys, self.layer.v_dim)
        return linear(merge_heads(mixed), params, "out")

    def _project(
        self,
        params: Params,
        part: str,
        tokens: Float[Tensor, "#members batch tokens dim"],
        size: int,
    ) -> Float[Tensor, "members batch heads tokens size"]:
        return split_heads(linear(tokens, params, part), self.layer.heads, size)

    def _check(self, inputs: Tensor) -> None:
        length, dim = inputs.shape[-2:]
        require(
            dim == self.token_dim, f"tokens have {dim} numbers; the layer takes {self.token_dim}"
        )
        keys = length - (self.query == "last")
        require(keys >= 1, "a sequence has at least one key")
        require(
            not self.position_bias or keys <= self.position_bias,
            f"the sequence has {keys} keys; the layer has {self.position_bias} positions",
        )


class AttentionNet(Net[AttentionNetShape]):
    """One attention layer."""

    shape_type = AttentionNetShape
    described = "attention layer"
