"""Embed, score, soften, pool: nearly all the work of a step, forward and backward.

Tokens are columns. A block of columns is small enough for the hidden layer r (width × columns)
to stay in the first-level cache through all products that use it. Softmax is taken piece by
piece: exponents refer to the largest score so far, and what was summed is rescaled when it grows.
Columns beyond a sequence's end get a score of −∞, hence no weight and no gradient.
"""

from typing import Any

import numpy as np

from headwise.train.fused.host import LANES, inner
from headwise.train.fused.layout import Scratch, Sizes, Weights
from headwise.train.fused.products import Block, Memory, dots, flip, part, product
from headwise.train.fused.simd import (
    add,
    exp,
    fma,
    lane0,
    largest,
    load,
    maximum,
    mul,
    splat,
    store,
    sub,
    total,
)
from headwise.train.fused.tiles import ADD, GATE, PLAIN, RELU

MINUS_INFINITY = np.float32(-np.inf)
ZERO, ONE = np.float32(0), np.float32(1)


@inner
def block_of(area: Block, rows: int, index: int) -> Block:
    """The index-th of the equal blocks of `rows` rows that lie one after another."""
    return part(area, rows * index, 0)


@inner
def exp_of(x: float) -> Any:
    return lane0(exp(splat(x)))


@inner
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
        for s in range(here):
            own = part(attention, 0, s * sizes.span)
            pooled = pooled_of(sizes, scratch.pooled, first + s)
            soften(
                memory, sizes, scratch, own, pooled, first + s, start, block * sizes.sequences + s
            )
            r = part(hidden, 0, s * sizes.span)
            mode = ADD if piece else PLAIN
            dots(memory, sizes.heads, sizes.width, sizes.span, own, r, pooled, mode)
            if piece == sizes.pieces - 1:
                finish(memory, sizes, scratch, pooled, first + s)


@inner
def pooled_of(sizes: Sizes, area: Block, sequence: int) -> Block:
    """One sequence's rows of `pooled` or `pooled_grad`, as a matrix with a row a head."""
    stride = (sizes.width + 2 + LANES - 1) // LANES * LANES
    return Block(area.at + sequence * area.row, stride, 1)


@inner
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


@inner
def soften(
    memory: Memory,
    sizes: Sizes,
    scratch: Scratch,
    attention: Block,
    pooled: Block,
    sequence: int,
    start: int,
    place: int,
) -> None:
    """Scores → exponentials, not yet divided by their sum, and the sums so far."""
    end = sizes.length - start
    for i in range(sizes.heads):
        row, state = attention.at + i * attention.row, sequence * scratch.top.row + i
        for t in range(end, sizes.span):
            memory[row + t] = MINUS_INFINITY
        if start == 0:
            class_score = memory[scratch.scores.at + i * scratch.scores.row + sizes.width + 1]
            top = class_score if sizes.class_token_is_key else MINUS_INFINITY
            summed = ONE if sizes.class_token_is_key else ZERO
        else:
            top, summed = memory[scratch.top.at + state], memory[scratch.share.at + state]
        peak = splat(top)
        for t in range(0, sizes.span, LANES):
            peak = maximum(peak, load(memory, row + t))
        new = largest(peak)
        peak, sums = splat(new), splat(ZERO)
        for t in range(0, sizes.span, LANES):
            weight = exp(sub(load(memory, row + t), peak))
            sums = add(sums, weight)
            store(memory, row + t, weight)
        shrink = exp_of(top - new)
        if start > 0:
            scale_row(memory, pooled.at + i * pooled.row, sizes.width, shrink)
        memory[scratch.share.at + state] = summed * shrink + total(sums)
        memory[scratch.top.at + state] = new
        memory[scratch.peak.at + place * scratch.peak.row + i] = new


@inner
def scale_row(memory: Memory, at: int, count: int, factor: float) -> None:
    factors = splat(factor)
    for j in range(0, count, LANES):
        store(memory, at + j, mul(load(memory, at + j), factors))


@inner
def finish(memory: Memory, sizes: Sizes, scratch: Scratch, pooled: Block, sequence: int) -> None:
    """Divide by the sums and append 1 and the class token's weight."""
    for i in range(sizes.heads):
        state, row = sequence * scratch.top.row + i, pooled.at + i * pooled.row
        share = ONE / memory[scratch.share.at + state]
        memory[scratch.share.at + state] = share
        scale_row(memory, row, sizes.width, share)
        memory[row + sizes.width] = ONE
        own = ZERO
        if sizes.class_token_is_key:
            class_score = memory[scratch.scores.at + i * scratch.scores.row + sizes.width + 1]
            own = exp_of(class_score - memory[scratch.top.at + state]) * share
        memory[row + sizes.width + 1] = own


@inner
def pool_back(memory: Memory, sizes: Sizes, grads: Weights, scratch: Scratch, count: int) -> None:
    """Gradients of embed0 and of the folded scores, added up, from those of `pooled`."""
    for block in range((count + sizes.sequences - 1) // sizes.sequences * sizes.pieces):
        first, piece = block // sizes.pieces * sizes.sequences, block % sizes.pieces
        here = min(sizes.sequences, count - first)
        hidden = block_of(scratch.hidden, sizes.width, block)
        attention = block_of(scratch.weights, 2 * sizes.heads, block)
        slopes = part(attention, sizes.heads, 0)
        for s in range(here):
            pooled_grad = pooled_of(sizes, scratch.pooled_grad, first + s)
            if piece == 0:
                prepare(memory, sizes, scratch, pooled_grad, first + s)
            at = s * sizes.span
            r, own = part(hidden, 0, at), part(attention, 0, at)
            product(
                memory, sizes.heads, sizes.span, sizes.width, pooled_grad, r, part(slopes, 0, at),
                PLAIN, r,
            )  # fmt: skip
            soften_back(
                memory, sizes, scratch, own, pooled_grad, first + s, block * sizes.sequences + s
            )
            back = flip(pooled_grad)  # [gradient of P | scores]ᵀ·[attention ; score gradients]
            product(
                memory, sizes.width, sizes.span, 2 * sizes.heads, back, own,
                part(scratch.hidden_grad, 0, at), GATE, r,
            )  # fmt: skip
        columns = here * sizes.span
        dots(memory, sizes.heads, sizes.width, columns, slopes, hidden, scratch.scores_grad, ADD)
        tokens = block_of(scratch.tokens, sizes.token_dim + 1, block)
        dots(
            memory, sizes.token_dim + 1, sizes.width, columns, tokens, scratch.hidden_grad,
            grads.embed0, ADD,
        )  # fmt: skip


@inner
def prepare(
    memory: Memory, sizes: Sizes, scratch: Scratch, pooled_grad: Block, sequence: int
) -> None:
    """Σ_t a_t·∂a_t of each head, kept in the unused column; the class token's score gradient."""
    pooled = pooled_of(sizes, scratch.pooled, sequence)
    for i in range(sizes.heads):
        row, own = pooled_grad.at + i * pooled_grad.row, pooled.at + i * pooled.row
        memory[row + sizes.width] = ZERO
        sums = splat(ZERO)
        for j in range(0, pooled.row, LANES):
            sums = fma(load(memory, row + j), load(memory, own + j), sums)
        mean = total(sums)
        memory[row + sizes.width] = mean
        class_grad = memory[own + sizes.width + 1] * (memory[row + sizes.width + 1] - mean)
        memory[scratch.scores_grad.at + i * scratch.scores_grad.row + sizes.width + 1] += class_grad
        score = scratch.scores.at + i * scratch.scores.row
        below = row + sizes.heads * pooled_grad.row
        for j in range(0, pooled_grad.row, LANES):
            store(memory, below + j, load(memory, score + j))


@inner
def soften_back(
    memory: Memory,
    sizes: Sizes,
    scratch: Scratch,
    attention: Block,
    pooled_grad: Block,
    sequence: int,
    place: int,
) -> None:
    """Exponentials → attention; gradient of attention → of the scores, in the rows below."""
    below = sizes.heads * attention.row
    for i in range(sizes.heads):
        state, row = sequence * scratch.top.row + i, attention.at + i * attention.row
        peak = memory[scratch.peak.at + place * scratch.peak.row + i]
        share = memory[scratch.share.at + state] * exp_of(peak - memory[scratch.top.at + state])
        shares = splat(share)
        mean = splat(memory[pooled_grad.at + i * pooled_grad.row + sizes.width])
        for t in range(0, sizes.span, LANES):
            weight = mul(load(memory, row + t), shares)
            slope = mul(weight, sub(load(memory, row + below + t), mean))
            store(memory, row + t, weight)
            store(memory, row + below + t, slope)
