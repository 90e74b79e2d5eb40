"""Plans: how large each head shall be. An ordinary JSON file that can be read, edited, applied."""

from pathlib import Path
from typing import Any

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import InputError, require
from headwise.core.files import read_spec, write_spec
from headwise.core.spec import spec
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.plan.shapes import GroupShape, LayerShape, full_shape

METHODS = ("fisher", "svd-llm", "modegpt", "taylor", "uniform-svd", "prune-heads", "random")


@spec
class CompressionPlan:
    """A shape for every layer of one model.

    `model` identifies it (remove its "weights" entry to apply a plan to a sibling of the same
    shape); `method` says how heads are reduced; `budget` and `predicted_damage` say how the plan
    came about and are not needed to apply it.
    """

    model: dict[str, Any]
    method: str
    layers: tuple[LayerShape, ...]
    budget: dict[str, Any] | None = None
    predicted_damage: float | None = None
    calibration: str | None = None
    seed: int = 0


def read_plan(path: Path) -> CompressionPlan | AllocationPlan:
    """A plan from its file: of `headwise compress` or of `headwise plan`."""
    plan = read_spec(path, "a plan")
    if not isinstance(plan, CompressionPlan | AllocationPlan):
        raise InputError(f"{path} is not a plan made by `headwise compress` or `headwise plan`")
    return plan


def write_plan(plan: CompressionPlan, path: Path) -> None:
    """Write atomically: the whole plan or nothing."""
    write_spec(plan, path)


def check_plan(plan: CompressionPlan, identity: dict[str, Any], sites: list[AttentionSite]) -> None:
    """Refuse a plan for another model or with shapes that cannot be."""
    require(
        plan.method in METHODS,
        f"the plan's method {plan.method!r} is unknown; known are {', '.join(METHODS)}",
    )
    for name, value in plan.model.items():
        require(
            identity.get(name) == value,
            f"the plan is for another model: its {name} is {value!r}, this model's is "
            f"{identity.get(name)!r}",
        )
    require(
        len(plan.layers) == len(sites),
        f"the plan has {len(plan.layers)} layers, the model {len(sites)}",
    )
    for index, (layer, site) in enumerate(zip(plan.layers, sites, strict=True)):
        try:
            check_shape(layer, site)
        except InputError as error:
            raise InputError(f"the plan's layer {index}: {error}") from error


def check_shape(shape: LayerShape, site: AttentionSite) -> None:
    """Refuse a layer shape that this layer cannot take."""
    require(isinstance(shape, LayerShape), "a layer must be a LayerShape")
    require(
        len(shape.groups) == site.kv_heads,
        f"it has {len(shape.groups)} key groups, the model {site.kv_heads}",
    )
    require(
        any(group.heads for group in shape.groups),
        "every head is removed; at least one must stay",
    )
    for index, group in enumerate(shape.groups):
        if group.heads:
            _check_group(group, index, site)
    kept = [group for group in shape.groups if group.heads]
    require(
        not shape.padded
        or (
            len({len(group.heads) for group in kept}) == 1
            and (not site.rotary or len({group.qk_dim for group in kept}) == 1)
        ),
        "heads can be padded only if all key groups have as many query heads and, under RoPE, one "
        "qk_dim; set padded to false",
    )
    _check_ranks(shape, site)
    require(
        not shape.fused
        or (
            site.norm is None
            and not site.cross
            and len({(g.qk_dim, g.v_dim, len(g.heads)) for g in kept}) == 1
            and (shape.query_rank, shape.key_rank, shape.value_rank) == (None, None, None)
            and not shape.pivoted_heads
        ),
        "fused is for heads of one size, dense, without a norm or a second sequence",
    )


def _check_ranks(shape: LayerShape, site: AttentionSite) -> None:
    rows, keys = site.heads * site.head_dim, site.kv_heads * site.head_dim
    everywhere = shape.value_rank is not None and shape.output_rank is not None
    for name, rank, width in (
        ("query_rank", shape.query_rank, rows),
        ("key_rank", shape.key_rank, keys),
        ("value_rank", shape.value_rank, keys),
        ("output_rank", shape.output_rank, rows),
    ):
        if rank is None:
            continue
        require(
            site.rotary or everywhere,
            f"{name} is for models with RoPE (or all four ranks for any); use qk_dim here",
        )
        largest = min(width, site.hidden)
        require(_whole(rank, 1, largest), f"{name} is {rank!r}, not a number from 1 to {largest}")
        require(
            all(group.qk_dim == site.head_dim for group in shape.groups if group.heads),
            f"{name} cannot be combined with a reduced qk_dim",
        )
    require(
        not everywhere or not (shape.pivoted or shape.pivoted_heads),
        "pivoted and pivoted_heads do not go with value_rank and output_rank",
    )
    require(
        everywhere or (shape.value_rank is None and shape.output_rank is None),
        "value_rank and output_rank go together",
    )
    require(
        not everywhere or shape.groups == full_shape(site).groups,
        "value_rank and output_rank are for layers that keep all of their heads",
    )


def _check_group(group: GroupShape, index: int, site: AttentionSite) -> None:
    first = index * site.group_size
    allowed = range(first, first + site.group_size)
    require(
        all(head in allowed for head in group.heads) and len(set(group.heads)) == len(group.heads),
        f"key group {index} can have heads {list(allowed)}, not {list(group.heads)}",
    )
    for name, dim in (("qk_dim", group.qk_dim), ("v_dim", group.v_dim)):
        require(
            _whole(dim, 1, site.head_dim),
            f"key group {index}: {name} is {dim!r}, not a number from 1 to {site.head_dim}",
        )
    require(
        not site.rotary or group.qk_dim % 2 == 0,
        f"key group {index}: qk_dim is {group.qk_dim}, but RoPE turns coordinates in pairs; "
        "use an even number",
    )


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
