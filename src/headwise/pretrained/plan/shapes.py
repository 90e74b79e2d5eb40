"""The shape of a reduced attention layer, as plain data: what a plan and a checkpoint speak of."""

from dataclasses import dataclass

from headwise.core.spec import spec
from headwise.pretrained.adapters.base import AttentionSite


@spec
class GroupShape:
    """One key head and the query heads that use it. No heads: the group is removed.

    `heads` are indices among all of the original layer's query heads; `qk_dim` is the dimension
    of the queries and keys that are left, `v_dim` that of the values.
    """

    heads: tuple[int, ...]
    qk_dim: int
    v_dim: int


@spec
class LayerShape:
    """Groups in the order of the original key heads; ranks of shared factors, None for dense.

    A shared factor writes all heads' query (or key) rows as one product B·A of inner rank
    `query_rank` (`key_rank`), before the head split: RoPE is untouched, parameters shrink, the
    cache does not. `value_rank` and `output_rank` do the same to the values and the output.
    `pivoted`: of all B·A that are the same map, the one in which some rows of B are those of the
    identity. They need not be stored, so rank r of an n × m matrix takes r (n + m − r) numbers.
    `pivoted_heads`: the same of each key head's values, whose product with the outputs counts, and
    without RoPE of its keys, whose product with the queries counts.

    `padded`: all heads are computed in one call, with zeros up to the largest, in the cache too.
    That is faster; not padded, heads of different sizes take a call each and no byte of cache is
    wasted. The parameters are the same. `fused`: heads are of one size, and one product computes
    their queries, keys and values.
    """

    groups: tuple[GroupShape, ...]
    query_rank: int | None = None
    key_rank: int | None = None
    padded: bool = False
    value_rank: int | None = None
    output_rank: int | None = None
    fused: bool = False
    pivoted: bool = False
    pivoted_heads: bool = False


@spec
class LayerLayout:
    """A layer shape and which of its projections carry a bias: enough to rebuild the module."""

    shape: LayerShape
    biases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bucket:
    """Key heads computed in one call, at one shape: `members` index the layer's groups."""

    members: tuple[int, ...]
    queries: int
    qk_dim: int
    v_dim: int


def full_shape(site: AttentionSite) -> LayerShape:
    """The layer as it is."""
    per = site.group_size
    groups = tuple(
        GroupShape(
            heads=tuple(range(key * per, (key + 1) * per)),
            qk_dim=site.head_dim,
            v_dim=site.head_dim,
        )
        for key in range(site.kv_heads)
    )
    return LayerShape(groups=groups)


def buckets(shape: LayerShape) -> list[Bucket]:
    """Groups that are left, by equal shape, the largest first; or all of them, padded."""
    kept = [(index, group) for index, group in enumerate(shape.groups) if group.heads]
    if shape.padded:
        largest = (max(g.qk_dim for _, g in kept), max(g.v_dim for _, g in kept))
        return [Bucket(tuple(index for index, _ in kept), len(kept[0][1].heads), *largest)]
    by_shape: dict[tuple[int, int, int], list[int]] = {}
    for index, group in kept:
        key = (len(group.heads), group.qk_dim, group.v_dim)
        by_shape.setdefault(key, []).append(index)
    return [Bucket(tuple(members), *key) for key, members in sorted(by_shape.items(), reverse=True)]


def pad_columns(sizes: list[int], largest: int) -> list[int]:
    """For each padded column the real one it holds; padding points one past the last."""
    columns, start = [], 0
    for size in sizes:
        columns += [*range(start, start + size), *[sum(sizes)] * (largest - size)]
        start += size
    return columns


def keys_hold_identities(site: AttentionSite, shape: LayerShape) -> bool:
    """Whether `pivoted_heads` speaks of keys too."""
    return shape.pivoted_heads and not site.rotary


def identity(inputs: int, size: int) -> int:
    """The size of the identity in a head's matrix, if it has more columns than rows."""
    return size if size < inputs else 0


def kept_order(shape: LayerShape) -> list[int]:
    """Groups that are left, in the order in which the reduced layer stores them."""
    return [index for bucket in buckets(shape) for index in bucket.members]
