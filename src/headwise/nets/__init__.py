"""Networks, one a file, each small enough to read at a sitting."""

from headwise.nets.attention_net import AttentionNet, AttentionNetShape
from headwise.nets.base import Net, NetShape, TokenNetShape, stack
from headwise.nets.choices.ranker import RankerNet, RankerShape
from headwise.nets.choices.vision import VisionNet, VisionShape
from headwise.nets.class_token import ClassTokenNet, ClassTokenShape
from headwise.nets.decoder import DecoderNet, DecoderShape
from headwise.nets.encoder import EncoderNet, EncoderShape
from headwise.nets.pooled import PooledNet, PooledShape
from headwise.nets.shape import AttentionShape, MLPShape

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
    "Net",
    "NetShape",
    "PooledNet",
    "PooledShape",
    "RankerNet",
    "RankerShape",
    "TokenNetShape",
    "VisionNet",
    "VisionShape",
    "stack",
]
