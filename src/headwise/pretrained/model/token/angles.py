"""Cosines and sines of one position, as all layers of a forward pass look them up."""

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.mechanism import angles


class _Made(NamedTuple):
    of: weakref.ref[Tensor]
    scaling: float
    head_dim: int
    table: Tensor

    def serves(self, site: AttentionSite, cos: Tensor) -> bool:
        same = (self.scaling, self.head_dim) == (site.scaling, site.head_dim)
        return same and self.of() is cos


_last: _Made | None = None


def table_size(head_dim: int) -> int:
    """Of each of a table's two halves: cosines, sines, their negatives, and a zero."""
    return 3 * head_dim + 1


def angle_table(site: AttentionSite, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """What queries are multiplied by, scaled as scores are, and then what keys are.

    A forward pass gives all its layers the same cosines, so the table is made in the first of them.
    """
    global _last
    if torch.compiler.is_compiling():
        return _written(site, rotation)
    cos, known = rotation[0], _last
    if known is None or not known.serves(site, cos):
        known = _Made(weakref.ref(cos), site.scaling, site.head_dim, _written(site, rotation))
        _last = known
    return known.table


def _written(site: AttentionSite, rotation: Any) -> Tensor:
    cos, sin = angles(site, rotation)
    plain = torch.cat([cos, sin, -sin, torch.zeros_like(cos[..., :1])], -1)
    return torch.cat([plain * site.scaling, plain], -1)
