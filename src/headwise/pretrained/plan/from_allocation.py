"""A plan made for a new network, applied to a model that exists.

The heads of a layer that stay are those whose removal would cost most, at the plan's dimensions.
Compression can narrow heads and remove them, nothing else; a plan that asks for more is refused.
"""

from headwise.allocation.plan_file import AllocationPlan
from headwise.core.errors import require
from headwise.nets import AttentionShape
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.cutting import cut_to
from headwise.pretrained.plan.plan_file import CompressionPlan


def from_allocation(allocation: AllocationPlan, measurement: Measurement) -> CompressionPlan:
    """The plan of compression that gives every layer the allocation's shape."""
    sites = measurement.sites
    require(
        len(allocation.layers) == len(sites),
        f"the plan has {len(allocation.layers)} layers, the model {len(sites)}",
    )
    shapes, damage = [], 0.0
    for index, (layer, site) in enumerate(zip(allocation.layers, sites, strict=True)):
        _check(index, layer, site)
        shape, loss = cut_to(
            site,
            measurement.curves[index],
            layer.heads // site.group_size,
            layer.qk_dim,
            layer.v_dim,
        )
        shapes.append(shape)
        damage += loss
    return CompressionPlan(
        model=measurement.identity,
        method="fisher",
        layers=tuple(shapes),
        budget={"counts": "an allocation plan", "schedule": allocation.schedule},
        predicted_damage=damage,
        seed=measurement.seed,
    )


def _check(index: int, layer: AttentionShape, site: AttentionSite) -> None:
    for name, wanted, there in (
        ("heads", layer.heads, site.heads),
        ("qk_dim", layer.qk_dim, site.head_dim),
        ("v_dim", layer.v_dim, site.head_dim),
    ):
        require(
            wanted <= there,
            f"layer {index} of the plan has {name} {wanted}, the model {there}: compression "
            "removes heads and narrows them, it cannot add",
        )
    require(
        layer.heads % site.group_size == 0,
        f"layer {index} of the plan has {layer.heads} heads, but the model's share keys in groups "
        f"of {site.group_size}; whole groups can be removed",
    )
