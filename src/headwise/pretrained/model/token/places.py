"""Where one token's columns go: which of them, and of which angles, each coordinate takes.

Heads of unequal sizes have their keys side by side in the cache, and so their values. A query with
zeros where other heads' keys stand has the same scores with all of it, so that one product gives
those of all heads. Most of it is by zeros, but reading the cache is the cost, and it is read once,
in order, and not copied head by head.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.model.heads import HeadBucket
from headwise.pretrained.model.token.angles import table_size

_AT_ONCE = 8  # key heads in one product, most of which is by zeros


class Part(NamedTuple):
    """Queries of one product: how many coordinates each has, which columns of the cache they meet,
    and which results are theirs (None: all of them)."""

    width: int
    keys: slice
    values: slice
    own: Tensor | None


class Places(NamedTuple):
    """Of every coordinate of the queries, part after part, and then of the keys.

    `columns` are of what the projections put out: the coordinates' own, those that they turn with,
    and the values'. `angles` are of an `angle_table`: cosines, sines. Without RoPE, `factors` take
    their place. `sizes` are those of the parts' queries, and of the keys.
    """

    columns: Tensor
    angles: Tensor
    factors: Tensor | None
    sizes: list[int]
    groups: int
    parts: list[Part]


def places_of(kinds: list[HeadBucket], site: AttentionSite, order: Tensor) -> Places:
    """`order` is where the projections put the columns of queries, keys and values."""
    dim = site.head_dim if site.rotary else 1
    queries, first = _heads(kinds, "query", 0, site, dim)
    keys, first = _heads(kinds, "key", first, site, dim)
    values, _ = _columns(kinds, "value", first)
    alone = Part(kinds[0].qk_dim, slice(None), slice(None), kinds[0]._buffers["context_columns"])
    parts, spread = [alone], [queries]
    if len(kinds) > 1:
        parts, spread = _in_parts(kinds, queries, zero=3 * dim)
    unscaled = torch.tensor([0, 0, 1, 1])[:, None] * table_size(dim)
    every = [torch.cat(part, -1) for part in spread] + [torch.cat(keys, -1) + unscaled]
    own, partner, cosine, sine = torch.cat(every, -1)
    taken = [own, partner] if site.rotary else [own]
    factors = None
    if not site.rotary:
        plain = torch.tensor([1.0, 0.0, 0.0, 0.0])
        factors = torch.cat([plain * site.scaling, plain])[cosine]
    return Places(
        columns=order[torch.cat([*taken, values.clamp(min=0)])],
        angles=torch.cat([cosine, sine]),
        factors=factors,
        sizes=[part.shape[-1] for part in every],
        groups=kinds[0].count if len(kinds) == 1 else 1,
        parts=parts,
    )


def _columns(kinds: list[HeadBucket], role: str, first: int) -> tuple[Tensor, int]:
    """Columns of all heads as they are padded, −1 for padding; and the first of what follows."""
    every = []
    for kind in kinds:
        width = int(getattr(kind, f"{role}_width"))
        columns = kind._buffers[f"{role}_columns"]
        columns = torch.arange(width) if columns is None else columns
        every.append(torch.where(columns < width, columns + first, -1))
        first += width
    return torch.cat(every), first


def _heads(
    kinds: list[HeadBucket], role: str, first: int, site: AttentionSite, dim: int
) -> tuple[list[Tensor], int]:
    """Of each head (4, size): own columns, those they turn with, places of cosines and sines.

    The earlier half of a head's coordinates turns with the negative sine of the later one's.
    """
    heads = []
    for kind in kinds:
        columns, first = _columns([kind], role, first)
        rows = columns.view(-1, kind.qk_dim)
        turns = kind.turning(role, dim) if site.rotary else torch.zeros_like(rows)
        later = torch.arange(kind.qk_dim) >= kind.qk_dim // 2
        for own, turn in zip(rows, turns, strict=True):
            partner = own.roll(kind.qk_dim // 2)
            cosine = torch.where(own < 0, 3 * dim, turn)
            sine = torch.where((own < 0) | (partner < 0), 3 * dim, turn + dim * (2 - later.long()))
            heads.append(torch.stack([own.clamp(min=0), partner.clamp(min=0), cosine, sine]))
    return heads, first


def _in_parts(
    kinds: list[HeadBucket], queries: list[Tensor], zero: int
) -> tuple[list[Part], list[list[Tensor]]]:
    """Some key heads a part; their queries, each as wide as all those keys, by part."""
    sizes = [kind for kind in kinds for _ in range(kind.count)]
    parts, spread, heads = list[Part](), list[list[Tensor]](), iter(queries)
    keys = values = 0
    for first in range(0, len(sizes), _AT_ONCE):
        some = sizes[first : first + _AT_ONCE]
        width, depth = sum(kind.qk_dim for kind in some), sum(kind.v_dim for kind in some)
        rows, own = list[Tensor](), list[Tensor]()
        key = value = 0
        for kind in some:
            for _ in range(kind.num_key_value_groups):
                own.append(len(rows) * depth + value + torch.arange(kind.v_dim))
                rows.append(_among_zeros(next(heads), key, width, zero))
            key, value = key + kind.qk_dim, value + kind.v_dim
        columns = slice(keys, keys := keys + width), slice(values, values := values + depth)
        parts.append(Part(width, *columns, torch.cat(own)))
        spread.append(rows)
    return parts, spread


def _among_zeros(head: Tensor, first: int, width: int, zero: int) -> Tensor:
    """A head's places, from `first` on among so many."""
    around = (first, width - first - head.shape[-1])
    columns, angles = head.split(2)
    return torch.cat(
        [nn.functional.pad(columns, around), nn.functional.pad(angles, around, value=zero)]
    )
