"""Cut a layer's shape: all heads to one size, heads removed."""

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.curves import LayerCurves
from headwise.pretrained.plan.shapes import GroupShape, LayerShape, full_shape


def resized(shape: LayerShape, qk_dim: int, v_dim: int) -> LayerShape:
    """The shape with all its groups at these sizes."""
    groups = [GroupShape(heads=g.heads, qk_dim=qk_dim, v_dim=v_dim) for g in shape.groups]
    return LayerShape(groups=tuple(groups))


def without(shape: LayerShape, heads: tuple[int, ...]) -> LayerShape:
    """The shape with these query heads removed; a key head goes with its last query head."""
    groups = []
    for group in shape.groups:
        left = tuple(head for head in group.heads if head not in heads)
        kept = GroupShape(heads=left, qk_dim=group.qk_dim, v_dim=group.v_dim)
        groups.append(kept if left else GroupShape(heads=(), qk_dim=0, v_dim=0))
    return LayerShape(groups=tuple(groups))


def cut_to(
    site: AttentionSite, curves: LayerCurves, heads: int, qk_dim: int, v_dim: int
) -> tuple[LayerShape, float]:
    """The layer with its `heads` most valuable key groups at these sizes, and the damage."""
    removal = [float(curve[0]) for curve in curves.values]
    order = sorted(range(site.kv_heads), key=lambda group: -removal[group])
    shape = resized(full_shape(site), qk_dim, v_dim)
    gone = [head for group in order[heads:] for head in shape.groups[group].heads]
    damage = sum(removal[group] for group in order[heads:])
    for group in order[:heads]:
        damage += float(curves.queries[group][qk_dim] + curves.values[group][v_dim])
    return without(shape, tuple(gone)), damage
