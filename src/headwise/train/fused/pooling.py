"""Embed, score, soften, pool: nearly all the work of a step, forward and backward.

Tokens are columns. A block of columns is small enough for the hidden layer r (width × columns)
to stay in the first-level cache through all products that use it.
"""

import numpy as np

from headwise.train.fused.host import LANES, inner, pasted
from headwise.train.fused.layout import Scratch, Sizes, Weights
from headwise.train.fused.products import Block, Memory, dots, flip, part, product
from headwise.train.fused.simd import load, prefetch, store
from headwise.train.fused.softmax import (
    MINUS_INFINITY,
    ZERO,
    finish,
    pooled_of,
    prepare,
    soften,
    soften_back,
)
from headwise.train.fused.tiles import ADD, GATE, PLAIN, RELU


@pasted
def share_scores(memory: Memory, sizes: Sizes, scratch: Scratch) -> None:
    """Once a step: the folded scores where pooling wants them.

    The class token's score goes into a vector over heads; each sequence's `pooled_grad` gets a
    copy below the gradients, so that both enter one product.
    """
    scores = scratch.scores
    for i in range(sizes.heads):
        row = scores.at + i * scores.row
        own = memory[row + sizes.width + 1] if sizes.class_token_is_key else MINUS_INFINITY
        memory[scratch.class_score.at + i] = own
        for s in range(sizes.group):
            target = pooled_of(sizes, scratch.pooled_grad, s)
            below = target.at + (sizes.heads + i) * target.row
            for j in range(0, scores.row, LANES):
                store(memory, below + j, load(memory, row + j))


@pasted
def pool(
    memory: Memory,
    sizes: Sizes,
    weights: Weights,
    scratch: Scratch,
    inputs: Memory,
    order: np.ndarray,
    count: int,
) -> None:
    """P_i and the class token's weight for the sequences inputs[order[:count]]."""
    for block in range((count + sizes.sequences - 1) // sizes.sequences * sizes.pieces):
        first, piece = block // sizes.pieces * sizes.sequences, block % sizes.pieces
        here, start = min(sizes.sequences, count - first), piece * sizes.columns
        tokens = block_of(scratch.tokens, sizes.token_dim + 1, block)
        hidden = block_of(scratch.hidden, sizes.width, block)
        attention = block_of(scratch.weights, 2 * sizes.heads, block)
        for s in range(here):
            ahead(inputs, sizes, order[min(first + s + 2 * sizes.sequences, count - 1)], start)
            gather(memory, sizes, inputs, order[first + s], start, part(tokens, 0, s * sizes.span))
        columns = here * sizes.span
        embed = flip(weights.embed0)
        product(
            memory, sizes.width, columns, sizes.token_dim + 1, embed, tokens, hidden, RELU, hidden
        )
        product(
            memory, sizes.heads, columns, sizes.width, scratch.scores, hidden, attention, PLAIN,
            hidden,
        )  # fmt: skip
        for s in range(here):  # a loop of its own: the CPU overlaps short sequences
            own, place = part(attention, 0, s * sizes.span), block * sizes.sequences + s
            pooled = pooled_of(sizes, scratch.pooled, first + s)
            soften(memory, sizes, scratch, own, pooled, first + s, start, place)
        for s in range(here):
            own, r = part(attention, 0, s * sizes.span), part(hidden, 0, s * sizes.span)
            pooled = pooled_of(sizes, scratch.pooled, first + s)
            mode = ADD if piece else PLAIN
            dots(memory, sizes.heads, sizes.width, sizes.span, own, r, pooled, mode)
    for s in range(count):
        finish(memory, sizes, scratch, pooled_of(sizes, scratch.pooled, s), s)


@pasted
def pool_back(memory: Memory, sizes: Sizes, grads: Weights, scratch: Scratch, count: int) -> None:
    """Gradients of embed0 and of the folded scores, added up, from those of `pooled`."""
    for s in range(count):
        prepare(memory, sizes, scratch, pooled_of(sizes, scratch.pooled_grad, s), s)
    for block in range((count + sizes.sequences - 1) // sizes.sequences * sizes.pieces):
        first = block // sizes.pieces * sizes.sequences
        here = min(sizes.sequences, count - first)
        hidden = block_of(scratch.hidden, sizes.width, block)
        attention = block_of(scratch.weights, 2 * sizes.heads, block)
        slopes, hidden_grad = part(attention, sizes.heads, 0), scratch.hidden_grad
        for s in range(here):
            grad, at = pooled_of(sizes, scratch.pooled_grad, first + s), s * sizes.span
            r, slope = part(hidden, 0, at), part(slopes, 0, at)
            product(memory, sizes.heads, sizes.span, sizes.width, grad, r, slope, PLAIN, r)
        for s in range(here):
            grad, own = pooled_of(sizes, scratch.pooled_grad, first + s), s * sizes.span
            place = block * sizes.sequences + s
            soften_back(memory, sizes, scratch, part(attention, 0, own), grad, first + s, place)
        for s in range(here):  # [gradient of P | scores]ᵀ·[attention ; score gradients]
            grad, at = flip(pooled_of(sizes, scratch.pooled_grad, first + s)), s * sizes.span
            own, r, out = part(attention, 0, at), part(hidden, 0, at), part(hidden_grad, 0, at)
            product(memory, sizes.width, sizes.span, 2 * sizes.heads, grad, own, out, GATE, r)
        columns = here * sizes.span
        dots(memory, sizes.heads, sizes.width, columns, slopes, hidden, scratch.scores_grad, ADD)
        tokens = block_of(scratch.tokens, sizes.token_dim + 1, block)
        dots(
            memory, sizes.token_dim + 1, sizes.width, columns, tokens, hidden_grad,
            grads.embed0, ADD,
        )  # fmt: skip


@inner
def block_of(area: Block, rows: int, index: int) -> Block:
    """The index-th of the equal blocks of `rows` rows that lie one after another."""
    return part(area, rows * index, 0)


@pasted
def ahead(inputs: Memory, sizes: Sizes, sequence: int, start: int) -> None:
    """Fetch what a later block will gather: rows in random order defeat the CPU's own guess."""
    for k in range(sizes.token_dim):
        source = (sequence * sizes.token_dim + k) * sizes.length + start
        for t in range(0, min(sizes.length - start, sizes.span), 16):  # a line of 64 bytes
            prefetch(inputs, source + t)


@pasted
def gather(
    memory: Memory, sizes: Sizes, inputs: Memory, sequence: int, start: int, tokens: Block
) -> None:
    """Copy a piece of one sequence, coordinate by coordinate."""
    count = min(sizes.length - start, sizes.span)
    for k in range(sizes.token_dim):
        source = (sequence * sizes.token_dim + k) * sizes.length + start
        target, t = tokens.at + k * tokens.row, 0
        while t + LANES <= count:
            store(memory, target + t, load(inputs, source + t))
            t += LANES
        while t < count:
            memory[target + t] = inputs[source + t]
            t += 1
        while t < sizes.span:
            memory[target + t] = ZERO
            t += 1
