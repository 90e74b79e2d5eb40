"""The vision transformer: patches, a class token, positions, pre-norm layers, a linear readout."""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec
from headwise.nets.base import Net
from headwise.nets.choices.blocks import BlockShape, Drop, keep_all, norm_shapes, normed_linear
from headwise.nets.layers import ParameterShapes, Params, check_tokens, linear, linear_shapes
from headwise.nets.shape import AttentionShape


@spec
class VisionShape(BlockShape):
    """A ViT on `patches` patches of `token_dim` numbers, with `outputs` classes.

    Heads, their dimensions and the total width are free of each other: a layer's heads read
    `width` numbers and write `width` numbers, whatever they are. `dropout` is the share of what is
    written into the stream that training zeroes.
    """

    token_dim: int
    patches: int
    outputs: int
    width: int
    layers: tuple[AttentionShape, ...]
    ffn: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("token_dim", "patches", "outputs", "width", "ffn"):
            check_whole(getattr(self, name), name, 1)
        require(len(self.layers) >= 1, "a vision transformer has at least one layer")
        require(0 <= self.dropout < 1, "dropout is a share, from 0 up to 1")

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        shapes = linear_shapes("into", self.width, self.token_dim)
        shapes |= {"class_token": (1, self.width), "positions": (self.patches + 1, self.width)}
        shapes |= self.layer_shapes() | norm_shapes("norm", self.width)
        return shapes | linear_shapes("readout", self.outputs, self.width)

    def forward(
        self,
        params: Params,
        inputs: Float[Tensor, "#members batch patches token_dim"],
        drop: Drop = keep_all,
    ) -> Float[Tensor, "members batch outputs"]:
        """Logits of the classes, read at the class token."""
        check_tokens(inputs, self.token_dim, self.patches, "vision transformer")
        require(
            inputs.shape[2] == self.patches,
            f"images of {inputs.shape[2]} patches; the vision transformer takes {self.patches}",
        )
        patches = linear(inputs, params, "into")
        first = params["class_token"][:, None].expand(-1, patches.shape[1], -1, -1)
        stream = drop(torch.cat([first, patches], 2) + params["positions"][:, None])
        stream = self.run_layers(params, stream, drop)
        return normed_linear(stream[:, :, 0], params, "norm", "readout")


class VisionNet(Net[VisionShape]):
    """A vision transformer, from patches (batch, patches, token_dim) to logits."""

    shape_type = VisionShape
    described = "vision transformer"
