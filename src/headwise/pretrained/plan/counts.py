"""What a layer shape costs: parameters, key–value cache, floating-point operations."""

from headwise.pretrained.adapters import AttentionSite, AttentionWeights
from headwise.pretrained.plan.shapes import LayerShape, buckets, identity, keys_hold_identities


def original_parameters(weights: AttentionWeights) -> int:
    """Weights and biases of the four projections as they are."""
    return sum(part.numel() for affine in weights for part in affine if part is not None)


def widths(site: AttentionSite, shape: LayerShape) -> tuple[int, int, int, int]:
    """Columns of the layer's queries, keys, values and contexts as its projections put them out.

    A norm on queries and keys sees whole heads, one over the layer all of them.
    """
    kept = [group for group in shape.groups if group.heads]
    sizes = [site.head_dim if site.norm is not None else group.qk_dim for group in kept]
    queries = sum(len(group.heads) * size for group, size in zip(kept, sizes, strict=True))
    keys = sum(sizes)
    if site.norm is not None and site.norm.whole_layer:
        queries, keys = site.heads * site.head_dim, site.kv_heads * site.head_dim
    contexts = sum(len(group.heads) * group.v_dim for group in kept)
    return queries, keys, sum(group.v_dim for group in kept), contexts


def parameters(
    site: AttentionSite, shape: LayerShape, weights: AttentionWeights, *, means: bool = True
) -> int:
    """Parameters of the layer once cut to this shape; exactly what `apply.cut_layer` makes.

    `means`: whether the mean of what is cut off goes into an output bias, new if need be.
    """
    queries, keys, values, contexts = widths(site, shape)
    biased = weights.output.bias is not None or weights.value.bias is not None
    factored = shape.value_rank is not None or shape.output_rank is not None
    reduced = contexts < site.heads * site.head_dim
    count = _gains(site, shape) - _identities(site, shape)
    for inputs, outputs, rank, bias in (
        (site.hidden, queries, shape.query_rank, weights.query.bias is not None),
        (site.hidden, keys, shape.key_rank, weights.key.bias is not None and site.rotary),
        (site.hidden, values, shape.value_rank, factored and weights.value.bias is not None),
        (
            contexts,
            site.hidden,
            shape.output_rank,
            weights.output.bias is not None if factored else (reduced and means) or biased,
        ),
    ):
        mean = means and rank is not None and not factored  # of what a shared factor loses
        count += product_size(inputs, outputs, rank, shape.pivoted) + outputs * (bias or mean)
    return count


def product_size(inputs: int, outputs: int, rank: int | None, pivoted: bool) -> int:
    """Numbers of a dense matrix, or of two factors of it; see `LayerShape`."""
    if rank is None or (pivoted and rank >= outputs):
        return inputs * outputs
    return rank * (inputs + outputs - pivoted * rank)


def _identities(site: AttentionSite, shape: LayerShape) -> int:
    """What `pivoted_heads` saves."""
    if not shape.pivoted_heads:
        return 0
    kept = [group for group in shape.groups if group.heads]
    sizes = [group.v_dim for group in kept]
    sizes += [group.qk_dim for group in kept] if keys_hold_identities(site, shape) else []
    return sum(identity(site.hidden, size) ** 2 for size in sizes)


def _gains(site: AttentionSite, shape: LayerShape) -> int:
    """Under a norm, kept pairs' gains are numbers of their own instead of going into weights."""
    narrowed = [g for g in shape.groups if g.heads and g.qk_dim < site.head_dim]
    return sum(len(g.heads) * g.qk_dim for g in narrowed) if site.norm is not None else 0


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
    queries, keys, values, contexts = widths(site, shape)
    projections = (
        product_size(site.hidden, queries, shape.query_rank, shape.pivoted)
        + product_size(site.hidden, keys, shape.key_rank, shape.pivoted)
        + product_size(site.hidden, values, shape.value_rank, False)
        + product_size(contexts, site.hidden, shape.output_rank, False)
    )
    scored = sum(len(group.heads) * group.qk_dim for group in shape.groups)
    return 2 * (projections + context * (scored + contexts))
