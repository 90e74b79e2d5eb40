"""Networks, small enough to read at a sitting."""

from headwise.nets.attention import AttentionNetShape
from headwise.nets.decoder import DecoderShape
from headwise.nets.encoder import EncoderShape
from headwise.nets.module import AttentionNet, ClassTokenNet, DecoderNet, EncoderNet
from headwise.nets.shape import AttentionShape, ClassTokenShape, MLPShape

__all__ = [
    "AttentionNet",
    "AttentionNetShape",
    "AttentionShape",
    "ClassTokenNet",
    "ClassTokenShape",
    "DecoderNet",
    "DecoderShape",
    "EncoderNet",
    "EncoderShape",
    "MLPShape",
]
