"""Networks, small enough to read at a sitting."""

from headwise.nets.module import ClassTokenNet
from headwise.nets.shape import AttentionShape, ClassTokenShape, MLPShape

__all__ = ["AttentionShape", "ClassTokenNet", "ClassTokenShape", "MLPShape"]
