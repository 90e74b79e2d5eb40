"""Folding query, key and value maps through the embedding's second layer, and the way back.

With [W₂ | b₂ | c − b₂] in `embed1` (see layout.py) and u_i = W_K,iᵀ(W_Q,i c + b_Q,i)·scale:

    scores = uᵀ·embed1      r_t's score, an unused constant, the class token's score
    values = W_V·embed1     the value map of P_i | 1 | weight of the class token, bias included

Without residual and norm the readout's first layer follows the output map at once, and the two
fold into one map, `mix`. All are formed once a step; the gradients of the original parameters
follow from theirs. The key bias shifts all scores alike: its gradient is zero. (Linear attention
has no such direction: its scores are the keys themselves, W_K·embed1, bias included.)
"""

from headwise.core.compiled.host import inner, pasted
from headwise.training.fused.features import feature_slopes, make_features
from headwise.training.fused.layout import Scratch, Sizes, Weights
from headwise.training.fused.products import Memory, dots, flip, part, product
from headwise.training.fused.tiles import ADD, PLAIN


@pasted
def set_constants(memory: Memory, sizes: Sizes, weights: Weights) -> None:
    """The entries beside the parameters: the 1s and 0s that meet biases, and c − b₂."""
    embed1, class_token, dim = weights.embed1, weights.class_token.at, sizes.embed_dim
    memory[class_token + dim] = 1
    for j in range(sizes.width + 2):
        memory[embed1.at + dim * embed1.row + j] = 1 if j == sizes.width else 0
    for e in range(dim):
        bias = embed1.at + e * embed1.row + sizes.width
        memory[bias + 1] = memory[class_token + e] - memory[bias]


@pasted
def fold(memory: Memory, sizes: Sizes, weights: Weights, scratch: Scratch, scale: float) -> None:
    """Directions of the scores, value maps and readout, folded through the embedding."""
    heads, qk_dim, dim, wide = sizes.heads, sizes.qk_dim, sizes.embed_dim, sizes.width + 2
    vector = scratch.vector
    dots(memory, 1, heads * qk_dim, dim + 1, weights.class_token, weights.query, vector, PLAIN)
    for i in range(heads * qk_dim):
        memory[vector.at + i] *= scale
    if sizes.by_features:  # no direction: the keys themselves, bias included
        embed1, keys = weights.embed1, weights.key
        product(memory, heads * qk_dim, wide, dim + 1, keys, embed1, scratch.scores, PLAIN)
        make_features(memory, sizes, scratch)
    else:
        for i in range(heads):
            query = part(vector, 0, i * qk_dim)
            key = part(weights.key, key_map(sizes, i) * qk_dim, 0)
            product(memory, 1, dim, qk_dim, query, key, part(scratch.direction, i, 0), PLAIN)
        product(memory, heads, wide, dim, scratch.direction, weights.embed1, scratch.scores, PLAIN)
    rows, value_rows = heads * sizes.v_dim, sizes.key_maps * sizes.v_dim
    product(memory, value_rows, wide, dim + 1, weights.value, weights.embed1, scratch.values, PLAIN)
    if folds_readout(sizes):
        first, out, mix, width = weights.readout0, weights.out, scratch.mix, sizes.readout_width
        product(memory, width, rows + 1, dim, first, out, mix, PLAIN)
        for f in range(width):
            memory[mix.at + f * mix.row + rows] += memory[first.at + f * first.row + dim]


@inner
def key_map(sizes: Sizes, head: int) -> int:
    """The key and value map of a head: its own, or its group's."""
    return head * sizes.key_maps // sizes.heads


@inner
def folds_readout(sizes: Sizes) -> bool:
    """Is the readout linear in the heads, so that it can be folded too?"""
    return sizes.norm == 0 and sizes.residual == 0


@pasted
def unfold(
    memory: Memory, sizes: Sizes, weights: Weights, grads: Weights, scratch: Scratch, scale: float
) -> None:
    """Gradients of embed1, class token, query, key and value from those of scores and values."""
    heads, qk_dim, dim, wide = sizes.heads, sizes.qk_dim, sizes.embed_dim, sizes.width + 2
    embed1, direction, vector = weights.embed1, scratch.direction_grad, scratch.vector_grad
    rows = sizes.key_maps * sizes.v_dim
    dots(memory, rows, dim + 1, wide, scratch.values_grad, embed1, grads.value, PLAIN)
    from_values = flip(weights.value)
    product(memory, dim, wide, rows, from_values, scratch.values_grad, grads.embed1, PLAIN)
    count, token, scores_grad = heads * qk_dim, weights.class_token, scratch.scores_grad
    if sizes.by_features:
        feature_slopes(memory, sizes, scratch)
        product(memory, dim, wide, count, flip(weights.key), scores_grad, grads.embed1, ADD)
        dots(memory, count, dim + 1, wide, scores_grad, embed1, grads.key, PLAIN)
    else:
        from_scores = flip(scratch.direction)
        product(memory, dim, wide, heads, from_scores, scores_grad, grads.embed1, ADD)
        dots(memory, heads, dim, wide, scores_grad, embed1, direction, PLAIN)
        for i in range(heads):
            row = key_map(sizes, i) * qk_dim
            query, key = part(scratch.vector, 0, i * qk_dim), part(weights.key, row, 0)
            along, key_grad = part(direction, i, 0), part(grads.key, row, 0)
            mode = ADD if i and key_map(sizes, i - 1) == key_map(sizes, i) else PLAIN
            product(memory, qk_dim, dim, 1, flip(query), along, key_grad, mode)
            dots(memory, 1, qk_dim, dim, along, key, part(vector, 0, i * qk_dim), PLAIN)
    for i in range(count):
        memory[vector.at + i] *= scale
    product(memory, count, dim + 1, 1, flip(vector), token, grads.query, PLAIN)
    product(memory, 1, dim + 1, count, vector, weights.query, grads.class_token, PLAIN)
    _share_out(memory, sizes, grads)


@pasted
def _share_out(memory: Memory, sizes: Sizes, grads: Weights) -> None:
    """Entries beside the parameters pass their gradients on and have none themselves."""
    embed1, class_token, dim = grads.embed1, grads.class_token.at, sizes.embed_dim
    out_bias = grads.out.at + sizes.heads * sizes.v_dim
    for e in range(dim):
        bias = embed1.at + e * embed1.row + sizes.width
        shift = memory[bias + 1]
        memory[bias] -= shift
        memory[bias + 1] = 0
        memory[class_token + e] += shift
        if sizes.residual:  # c is added where the output bias is
            memory[class_token + e] += memory[out_bias + e * grads.out.row]
    memory[class_token + dim] = 0
