"""Model families: a page each that says where attention lives; `registry` lists them."""

from headwise.pretrained.adapters.base import (
    AttentionSite,
    AttentionWeights,
    LinearPart,
    Projection,
    QKNorm,
)
from headwise.pretrained.adapters.families import FAMILIES, Family
from headwise.pretrained.adapters.mechanism import read_weights
from headwise.pretrained.adapters.registry import (
    attention_sites,
    family_of,
    register_family,
    require_supported,
)

__all__ = [
    "FAMILIES",
    "AttentionSite",
    "AttentionWeights",
    "Family",
    "LinearPart",
    "Projection",
    "QKNorm",
    "attention_sites",
    "family_of",
    "read_weights",
    "register_family",
    "require_supported",
]
