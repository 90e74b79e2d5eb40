"""Networks as torch modules: call them, train them, save them, load them."""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets.attention import AttentionNetShape
from headwise.nets.base import CONFIG, WEIGHTS, Net
from headwise.nets.class_token import attend, attention_weights, forward
from headwise.nets.decoder import DecoderShape
from headwise.nets.encoder import EncoderShape
from headwise.nets.initial import initial_params
from headwise.nets.shape import ClassTokenShape

__all__ = [
    "CONFIG",
    "WEIGHTS",
    "AttentionNet",
    "ClassTokenNet",
    "DecoderNet",
    "EncoderNet",
    "Net",
    "stack",
]


class ClassTokenNet(Net[ClassTokenShape]):
    """The network of the head-count paper: attention pools a sequence into a class token."""

    shape_type = ClassTokenShape
    described = "class-token network"

    @staticmethod
    def initial(shape: ClassTokenShape, seed: int) -> dict[str, Tensor]:
        return initial_params(shape, seed)

    def forward(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch outputs"]:
        return forward(self.shape, self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)

    def attend(self, inputs: Float[Tensor, "batch length token_dim"]) -> Float[Tensor, "batch dim"]:
        """The class token after attention: all that the readout sees of the input."""
        return attend(self.shape, self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)

    def attention_weights(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch length heads"]:
        """How much each head of the last layer takes of each token."""
        params = self.stacked_parameters()
        return attention_weights(self.shape, params, inputs.unsqueeze(0)).squeeze(0)


class AttentionNet(Net[AttentionNetShape]):
    """One attention layer."""

    shape_type = AttentionNetShape
    described = "attention layer"

    @staticmethod
    def initial(shape: AttentionNetShape, seed: int) -> dict[str, Tensor]:
        return shape.initial_params(seed)

    def forward(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch asking outputs"]:
        return self.shape.forward(self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)


class EncoderNet(Net[EncoderShape]):
    """An encoder: the rank paper's, or a plain one."""

    shape_type = EncoderShape
    described = "encoder"

    @staticmethod
    def initial(shape: EncoderShape, seed: int) -> dict[str, Tensor]:
        return shape.initial_params(seed)

    def forward(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch length outputs"]:
        return self.shape.forward(self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)


class DecoderNet(Net[DecoderShape]):
    """A decoder whose layers may all differ in heads, query–key rank and value dimension."""

    shape_type = DecoderShape
    described = "decoder"

    @staticmethod
    def initial(shape: DecoderShape, seed: int) -> dict[str, Tensor]:
        return shape.initial_params(seed)

    def forward(self, inputs: Tensor) -> Float[Tensor, "batch length outputs"]:
        """`inputs`: token numbers (batch, length), or real tokens (batch, length, token_dim)."""
        return self.shape.forward(self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)


def stack(nets: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Parameters of many networks of one shape, stacked along the axis of members."""
    return {name: torch.stack([net[name] for net in nets]) for name in nets[0]}
