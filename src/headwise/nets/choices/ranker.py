"""The two-layer encoder of the ranking experiment: a projection to width, layers, a score.

It reads frozen embeddings, which know their positions and segments, and has no positions of its
own. Packed as "pairs", every candidate is a sequence of tokens with the query, read at its first
token; packed as "candidates", one sequence holds the query's vector and then all candidates', and
each candidate is read where it stands. Either way the order of candidates means nothing.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec
from headwise.nets.base import Net
from headwise.nets.choices.blocks import BlockShape, Drop, keep_all, norm_shapes, normed_linear
from headwise.nets.layers import ParameterShapes, Params, check_tokens, linear, linear_shapes
from headwise.nets.shape import AttentionShape

Packing = Literal["pairs", "candidates"]


@spec
class RankerShape(BlockShape):
    """An encoder that gives every candidate a score. A token of zeros is padding.

    Heads, their dimensions and the total width are free of each other. `dropout` is the share of
    what is written into the stream that training zeroes.
    """

    token_dim: int
    width: int
    layers: tuple[AttentionShape, ...]
    ffn: int
    packing: Packing
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("token_dim", "width", "ffn"):
            check_whole(getattr(self, name), name, 1)
        require(len(self.layers) >= 1, "a ranking encoder has at least one layer")
        require(0 <= self.dropout < 1, "dropout is a share, from 0 up to 1")
        require(
            self.packing in ("pairs", "candidates"),
            f"packing is 'pairs' or 'candidates', not {self.packing!r}",
        )

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        shapes = linear_shapes("into", self.width, self.token_dim) | self.layer_shapes()
        return shapes | norm_shapes("norm", self.width) | linear_shapes("readout", 1, self.width)

    def forward(
        self,
        params: Params,
        inputs: Float[Tensor, "#members batch *candidates tokens token_dim"],
        drop: Drop = keep_all,
    ) -> Float[Tensor, "members batch scored"]:
        """A score for every candidate.

        `inputs`: (members or 1, queries, candidates, tokens, token_dim) as pairs;
        (members or 1, queries, 1 + candidates, token_dim) as candidates.
        """
        check_tokens(inputs, self.token_dim, 0, "ranking encoder")
        axes = 5 if self.packing == "pairs" else 4
        require(
            inputs.dim() == axes,
            f"packed as {self.packing}, inputs have {axes} axes and not {inputs.dim()}",
        )
        rows = inputs.flatten(1, 2) if self.packing == "pairs" else inputs
        keys = (rows != 0).any(-1) if self.packing == "pairs" else None
        stream = self.run_layers(params, drop(linear(rows, params, "into")), drop, keys)
        read = stream[:, :, 0] if self.packing == "pairs" else stream[:, :, 1:]
        scores = normed_linear(read, params, "norm", "readout").squeeze(-1)
        return scores.unflatten(1, inputs.shape[1:3]) if self.packing == "pairs" else scores


class RankerNet(Net[RankerShape]):
    """A ranking encoder, from packed embeddings to a score a candidate."""

    shape_type = RankerShape
    described = "ranking encoder"
