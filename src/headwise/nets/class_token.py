"""The network of the head-count paper: attention pools a sequence into a class token.

One layer is computed by the O(T) form of `folded.py`; several layers, and positions that are added
to the tokens, by attention in general.
"""

from math import prod, sqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.core.spec import added, spec
from headwise.nets.attention import attend
from headwise.nets.base import LayeredShape, Net
from headwise.nets.folded import attend_folded, embed_hidden
from headwise.nets.layers import (
    ParameterShapes,
    Params,
    check_tokens,
    linear,
    linear_shapes,
    merge_heads,
    mlp,
    mlp_shapes,
    split_heads,
)
from headwise.nets.shape import AttentionShape, MLPShape
from headwise.nets.start import Start, start_weights

_Queries = Float[Tensor, "members batch queries dim"]
_Tokens = Float[Tensor, "members batch tokens dim"]


@spec
class ClassTokenShape(LayeredShape):
    """The network of the head-count paper.

    Tokens are embedded by an MLP, a trainable class token is appended, attention layers follow,
    and a second MLP reads the class token. `positions` is 0, or the length up to which a learned
    table of positions reaches: "add" adds it to the embedded tokens, "concat" appends a one-hot
    position to the token before the embedding. `scaled` divides scores by √qk_dim. `between` is the
    hidden width of a ReLU feed-forward network after every attention layer but the last (0: none),
    with a residual connection where attention has one. With `class_token_waits` only the last layer
    changes the class token. `start` is how weights are drawn (`initial_params`).
    """

    token_dim: int
    embed_dim: int
    layers: tuple[AttentionShape, ...]
    embed: MLPShape
    readout: MLPShape
    outputs: int = 1
    positions: int = 0
    position_kind: Literal["add", "concat"] = "add"
    class_token_is_key: bool = True
    scaled: bool = True
    residual: bool = False
    norm: bool = False
    between: int = added(0)
    class_token_waits: bool = added(False)
    start: Start = added("small")

    def __post_init__(self) -> None:
        for name in ("token_dim", "embed_dim", "outputs"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(len(self.layers) >= 1, "a class-token network has at least one attention layer")
        require(self.positions >= 0, "positions is 0 (none) or a number of positions")
        require(self.position_kind in ("add", "concat"), "position_kind is 'add' or 'concat'")
        require(self.start in ("small", "torch"), "start is 'small' or 'torch'")
        require(self.between >= 0, "between is 0 (no feed-forward network) or its hidden width")
        require(
            len(self.layers) > 1 or not (self.between or self.class_token_waits),
            "between and class_token_waits are about what lies between two layers; there is one",
        )

    @classmethod
    def standard(
        cls,
        *,
        token_dim: int,
        heads: int,
        head_dim: int = 8,
        width: int = 32,
        layers: int = 1,
        residual: bool = False,
        norm: bool = False,
        outputs: int = 1,
    ) -> "ClassTokenShape":
        """The paper's network: E = heads·head_dim, ReLU embedding and GELU readout of one width."""
        require(heads >= 1, f"heads is {heads}; the least is 1")
        require(head_dim >= 1, f"head_dim is {head_dim}; the least is 1")
        require(layers >= 1, f"layers is {layers}; the least is 1")
        shape = AttentionShape(heads=heads, qk_dim=head_dim, v_dim=head_dim)
        return cls(
            token_dim=token_dim,
            embed_dim=heads * head_dim,
            layers=(shape,) * layers,
            embed=MLPShape(widths=(width,), activation="relu"),
            readout=MLPShape(widths=(width,), activation="gelu"),
            residual=residual,
            norm=norm,
            outputs=outputs,
        )

    @classmethod
    def fixed_width(
        cls, *, token_dim: int, heads: int, total: int = 32, width: int = 32, layers: int = 1
    ) -> "ClassTokenShape":
        """The paper's fixed-total-width variant: ⌈total/heads⌉ dimensions a head."""
        require(heads >= 1, f"heads is {heads}; the least is 1")
        each = -(-total // heads)
        return cls.standard(
            token_dim=token_dim, heads=heads, head_dim=each, width=width, layers=layers
        )

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        dim = self.embed_dim
        shapes = mlp_shapes("embed", [self.token_dim, *self.embed.widths, dim])
        if self.positions:
            added = self.position_kind == "add" or not self.embed.widths
            shapes["positions"] = (self.positions, dim if added else self.embed.widths[0])
        shapes["class_token"] = (dim,)
        for index, layer in enumerate(self.layers):
            name = f"layers.{index}"
            shapes |= linear_shapes(f"{name}.query", layer.heads * layer.qk_dim, dim)
            shapes |= linear_shapes(f"{name}.key", layer.heads * layer.qk_dim, dim)
            shapes |= linear_shapes(f"{name}.value", layer.heads * layer.v_dim, dim)
            shapes |= linear_shapes(f"{name}.out", dim, layer.heads * layer.v_dim)
            if self.norm:
                shapes |= {f"{name}.norm.weight": (dim,), f"{name}.norm.bias": (dim,)}
            if self.between and index < len(self.layers) - 1:
                shapes |= mlp_shapes(f"between.{index}", [dim, self.between, dim])
        return shapes | mlp_shapes("readout", [dim, *self.readout.widths, self.outputs])

    def params(self) -> dict[str, int]:
        """Parameters by part; "mlp" is what the paper's M counts (embedding and readout)."""
        counts = {"embedding": 0, "attention": 0, "readout": 0}
        for name, shape in self.parameter_shapes().items():
            first = name.split(".")[0]
            part = {"embed": "embedding", "positions": "embedding", "readout": "readout"}
            part["between"] = "embedding"
            counts[part.get(first, "attention")] += prod(shape)
        counts["mlp"] = counts["embedding"] + counts["readout"]
        counts["total"] = counts["mlp"] + counts["attention"]
        return counts

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights: uniform of variance 1/(3·inputs), torch's own default for a linear layer.

        The query, key and value maps use Xavier's bound instead, as torch's attention does. Biases
        are zero, the class token is small and the readout's last layer is a tenth of its default.
        The last three are not cosmetic: with torch's defaults, which `start="torch"` keeps (biases
        as the weights, a class token of variance 1), most networks with too few heads stall at a
        poor plateau on long sequences.
        """
        return start_weights(self.parameter_shapes(), len(self.readout.widths), seed, self.start)

    def forward(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch outputs"]:
        """The networks' outputs: member m reads inputs[m], or the one input that all share."""
        return self.read_out(params, self.attend(params, inputs))

    def attend(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch dim"]:
        """The class token after the last attention layer: all that the readout sees."""
        if len(self.layers) == 1 and not self._adds_positions:
            heads = self.head_outputs(params, inputs)
            return self._finish(params, "layers.0", params["class_token"].unsqueeze(1), heads)
        stream = self._before_last_layer(params, inputs)
        return self._layer(params, len(self.layers) - 1, stream[:, :, -1:], stream).squeeze(2)

    def head_outputs(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch both"]:
        """What the heads of an only layer hand to its output map, side by side."""
        (layer,), hidden = self.layers, self._embed_hidden(params, inputs)
        scale, is_key = self._scale(layer), self.class_token_is_key
        return attend_folded(params, layer, hidden, self._last_map, scale, is_key)

    def attention_weights(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch length heads"]:
        """How much the last layer's heads take of each token (the class token has the rest)."""
        stream = self._before_last_layer(params, inputs)
        weights = self._weights(params, len(self.layers) - 1, stream[:, :, -1:], stream).squeeze(3)
        return weights[..., : inputs.shape[2]].mT

    def read_out(
        self, params: Params, hidden: Float[Tensor, "members batch dim"]
    ) -> Float[Tensor, "members batch outputs"]:
        """The MLP that reads the class token."""
        return mlp(hidden, params, "readout", self.readout)

    def _before_last_layer(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch length+1 dim"]:
        """Tokens, the class token last, as the last layer finds them."""
        tokens = linear(self._embed_hidden(params, inputs), params, self._last_map)
        if self._adds_positions:
            tokens = tokens + params["positions"][:, None, : inputs.shape[2]]
        start = params["class_token"][:, None, None].expand(-1, inputs.shape[1], 1, -1)
        stream = torch.cat([tokens, start], 2)
        for index in range(len(self.layers) - 1):
            after = self._between(params, index, self._layer(params, index, stream, stream))
            waiting = self.class_token_waits
            stream = torch.cat([after[:, :, :-1], stream[:, :, -1:]], 2) if waiting else after
        return stream

    def _between(self, params: Params, index: int, stream: _Tokens) -> _Tokens:
        """The feed-forward network that follows a layer, where there is one."""
        if not self.between:
            return stream
        block = MLPShape(widths=(self.between,), activation="relu")
        changed = mlp(stream, params, f"between.{index}", block)
        return stream + changed if self.residual else changed

    def _layer(self, params: Params, index: int, queries: _Queries, stream: _Tokens) -> _Queries:
        """A layer in general: the queries attend to all tokens that are keys."""
        layer, name = self.layers[index], f"layers.{index}"
        weights = self._weights(params, index, queries, stream)
        value = linear(self._keys(stream), params, f"{name}.value")
        mixed = weights @ split_heads(value, layer.heads, layer.v_dim)
        return self._finish(params, name, queries, merge_heads(mixed))

    def _weights(
        self, params: Params, index: int, queries: _Queries, stream: _Tokens
    ) -> Float[Tensor, "members batch heads queries keys"]:
        layer, name = self.layers[index], f"layers.{index}"
        query = split_heads(linear(queries, params, f"{name}.query"), layer.heads, layer.qk_dim)
        key = linear(self._keys(stream), params, f"{name}.key")
        return attend(query * self._scale(layer), split_heads(key, layer.heads, layer.qk_dim))

    def _keys(self, stream: _Tokens) -> Tensor:
        return stream if self.class_token_is_key else stream[:, :, :-1]

    def _finish(
        self,
        params: Params,
        name: str,
        before: Float[Tensor, "members #*batch dim"],
        heads: Float[Tensor, "members *batch both"],
    ) -> Float[Tensor, "members *batch dim"]:
        """Output projection, then the residual connection and the layer norm where they are on."""
        mixed = linear(heads, params, f"{name}.out")
        if self.residual:
            mixed = before + mixed
        if not self.norm:
            return mixed
        normalised = functional.layer_norm(mixed, (self.embed_dim,))
        axes = (slice(None), *[None] * (mixed.dim() - 2))
        return normalised * params[f"{name}.norm.weight"][axes] + params[f"{name}.norm.bias"][axes]

    def _embed_hidden(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch length hidden"]:
        """The last hidden layer of the embedding, of tokens that fit."""
        require(inputs.shape[2] >= 1, "a sequence has at least one token")
        check_tokens(inputs, self.token_dim, self.positions, "network")
        concatenated = self.positions > 0 and self.position_kind == "concat"
        return embed_hidden(params, inputs, self.embed, concatenated)

    @property
    def _last_map(self) -> str:
        """The embedding's last map, from its hidden layer to the tokens of the stream."""
        return f"embed.{len(self.embed.widths)}"

    @property
    def _adds_positions(self) -> bool:
        return self.positions > 0 and self.position_kind == "add"

    def _scale(self, layer: AttentionShape) -> float:
        return 1 / sqrt(layer.qk_dim) if self.scaled else 1.0


class ClassTokenNet(Net[ClassTokenShape]):
    """The network of the head-count paper, as a module."""

    shape_type = ClassTokenShape
    described = "class-token network"

    def attend(self, inputs: Float[Tensor, "batch length token_dim"]) -> Float[Tensor, "batch dim"]:
        """The class token after attention: all that the readout sees of the input."""
        return self.shape.attend(self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)

    def attention_weights(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch length heads"]:
        """How much each head of the last layer takes of each token."""
        return self.shape.attention_weights(self.stacked_parameters(), inputs[None]).squeeze(0)
