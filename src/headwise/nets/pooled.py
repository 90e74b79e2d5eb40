"""Networks that read a sequence as a whole: embed the tokens, pool them into a vector, read it out.

What pools is free: heads of any variant, a recurrence, convolutions, state-space layers, a
maximum or mean. So all of them train, are stored and are compared alike.
"""

from math import prod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets.base import Net
from headwise.nets.class_token import ClassTokenShape
from headwise.nets.folded import embed_hidden
from headwise.nets.layers import ParameterShapes, Params, check_tokens, mlp, mlp_shapes
from headwise.nets.sequence import Convolutions, HeadPooling, Recurrence, SetPooling, StateSpace
from headwise.nets.shape import AttentionShape, MLPShape
from headwise.nets.start import start_weights

AnyPooling = HeadPooling | Recurrence | Convolutions | StateSpace | SetPooling


@spec
class PooledShape:
    """A network of an embedding of `embed_dim` numbers a token, `pooling`, and a readout.

    `positions` is 0, or the length up to which a one-hot position is appended to each token before
    the embedding (as `ClassTokenShape`'s "concat").
    """

    token_dim: int
    embed_dim: int
    embed: MLPShape
    pooling: AnyPooling
    readout: MLPShape
    outputs: int = 1
    positions: int = 0

    def __post_init__(self) -> None:
        for name in ("token_dim", "embed_dim", "outputs"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(self.positions >= 0, "positions is 0 (none) or a number of positions")
        require(len(self.embed.widths) >= 1, "the embedding has at least one hidden layer")

    @classmethod
    def standard(
        cls,
        *,
        token_dim: int,
        pooling: AnyPooling,
        embed_dim: int,
        width: int = 32,
        positions: int = 0,
    ) -> "PooledShape":
        """ReLU embedding and GELU readout of one width, as in the head-count paper."""
        return cls(
            token_dim=token_dim,
            embed_dim=embed_dim,
            embed=MLPShape(widths=(width,), activation="relu"),
            pooling=pooling,
            readout=MLPShape(widths=(width,), activation="gelu"),
            positions=positions,
        )

    @classmethod
    def of_heads(
        cls,
        *,
        token_dim: int,
        heads: int,
        variant: str = "plain",
        head_dim: int = 8,
        width: int = 32,
        positions: int = 0,
    ) -> "PooledShape":
        """The head-count paper's network with heads of a variant: E = heads·head_dim."""
        layer = AttentionShape(heads=heads, qk_dim=head_dim, v_dim=head_dim)
        return cls.standard(
            token_dim=token_dim,
            pooling=HeadPooling(layer=layer, variant=variant),
            embed_dim=heads * head_dim,
            width=width,
            positions=positions,
        )

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """The attention layers, for tables; none of a network without heads."""
        return self.pooling.attention_layers

    @property
    def units(self) -> int:
        """Heads, channels or numbers of state."""
        return self.pooling.units(self.embed_dim)

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        dim = self.embed_dim
        shapes = mlp_shapes("embed", [self.token_dim, *self.embed.widths, dim])
        if self.positions:
            shapes["positions"] = (self.positions, self.embed.widths[0])
        shapes |= self.pooling.parameter_shapes(dim)
        out = [self.pooling.out_dim(dim), *self.readout.widths, self.outputs]
        return shapes | mlp_shapes("readout", out) | self.pooling.extra_shapes(dim)

    def params(self) -> dict[str, int]:
        """Parameters by part: embedding, pooling (heads and their like), readout, all."""
        counts = {"embedding": 0, "attention": 0, "readout": 0}
        part = {"embed": "embedding", "positions": "embedding", "readout": "readout"}
        for name, shape in self.parameter_shapes().items():
            counts[part.get(name.split(".")[0], "attention")] += prod(shape)
        return counts | {"total": sum(counts.values())}

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights, those of `ClassTokenShape` where the parameters are the same."""
        sizes = self.parameter_shapes()
        extra = self.pooling.extra_shapes(self.embed_dim)
        ordinary = {name: size for name, size in sizes.items() if name not in extra}
        params = start_weights(ordinary, len(self.readout.widths), seed)
        rng = np.random.default_rng([seed, 0x7A1D])
        for name, size in extra.items():
            values = self.pooling.initial(name, size, rng)
            params[name] = torch.from_numpy(values.astype(np.float32))
        return params

    def forward(
        self, params: Params, inputs: Float[Tensor, "#members batch length token_dim"]
    ) -> Float[Tensor, "members batch outputs"]:
        """The networks' outputs: member m reads inputs[m], or the one input that all share."""
        require(inputs.shape[2] >= 1, "a sequence has at least one token")
        check_tokens(inputs, self.token_dim, self.positions, "network")
        hidden = embed_hidden(params, inputs, self.embed, self.positions > 0)
        pooled = self.pooling.pool(params, hidden, f"embed.{len(self.embed.widths)}")
        return mlp(pooled, params, "readout", self.readout)


SequenceNetShape = ClassTokenShape | PooledShape
"""A network that reads a sequence as a whole and gives one answer."""


class PooledNet(Net[PooledShape]):
    """A network that pools a sequence, as a module."""

    shape_type = PooledShape
    described = "pooled network"
