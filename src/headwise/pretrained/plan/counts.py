"""What a layer shape costs: parameters, key–value cache, floating-point operations."""

from headwise.pretrained.adapters import AttentionSite, AttentionWeights
from headwise.pretrained.plan.shapes import LayerShape, buckets


def original_parameters(weights: AttentionWeights) -> int:
    """Weights and biases of the four projections as they are."""
    return sum(part.numel() for affine in weights for part in affine if part is not None)


def widths(shape: LayerShape) -> tuple[int, int, int, int]:
    """Columns of the layer's queries, keys, values and contexts."""
    return (
        sum(len(group.heads) * group.qk_dim for group in shape.groups),
        sum(group.qk_dim for group in shape.groups if group.heads),
        sum(group.v_dim for group in shape.groups if group.heads),
        sum(len(group.heads) * group.v_dim for group in shape.groups),
    )


def parameters(
    site: AttentionSite, shape: LayerShape, weights: AttentionWeights, *, means: bool = True
) -> int:
    """Parameters of the layer once cut to this shape; exactly what `apply.cut_layer` makes.

    `means`: whether the mean of what is cut off goes into an output bias, new if need be.
    """
    queries, keys, values, contexts = widths(shape)
    count = (values + contexts) * site.hidden
    for rows, rank, bias in (
        (queries, shape.query_rank, weights.query.bias is not None),
        (keys, shape.key_rank, weights.key.bias is not None and site.rotary),
    ):
        if rank is None:
            count += rows * (site.hidden + bias)
        else:
            count += rank * (rows + site.hidden) + rows
    reduced = contexts < site.heads * site.head_dim
    biased = weights.output.bias is not None or weights.value.bias is not None
    return count + site.hidden * ((reduced and means) or biased)


def shape_cost(
    site: AttentionSite,
    shape: LayerShape,
    weights: AttentionWeights,
    counts: str,
    *,
    means: bool = True,
) -> int:
    """In what the budget counts: "parameters" or numbers in the "cache"."""
    return (
        cache_elements(shape)
        if counts == "cache"
        else parameters(site, shape, weights, means=means)
    )


def cache_elements(shape: LayerShape) -> int:
    """Numbers that one token leaves in the layer's cache."""
    return sum(len(b.members) * (b.qk_dim + b.v_dim) for b in buckets(shape))


def flops_per_token(site: AttentionSite, shape: LayerShape, context: int) -> int:
    """Multiply–adds times two for one token that attends to `context` others."""
    queries, keys, values, contexts = widths(shape)

    def product(rows: int, rank: int | None) -> int:
        return rows * site.hidden if rank is None else rank * (rows + site.hidden)

    projections = (
        product(queries, shape.query_rank)
        + product(keys, shape.key_rank)
        + (values + contexts) * site.hidden
    )
    return 2 * (projections + context * (queries + contexts))
