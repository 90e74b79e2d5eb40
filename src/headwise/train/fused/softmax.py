"""Softmax over the tokens of a sequence, piece by piece, and its gradient.

Exponents refer to the largest score so far (`peak`); when a later piece has a larger one, what was
summed is rescaled, so any length needs one pass. Columns beyond the sequence's end get a score of
−∞, hence no weight and no gradient. What is one number a head is computed for LANES heads at once.
"""

import numpy as np

from headwise.train.fused.host import LANES, inner, pasted
from headwise.train.fused.layout import Scratch, Sizes
from headwise.train.fused.products import Block, Memory
from headwise.train.fused.simd import (
    add,
    div,
    exp,
    fma,
    largest,
    load,
    maximum,
    mul,
    splat,
    store,
    sub,
    total,
)

MINUS_INFINITY = np.float32(-np.inf)
ZERO, ONE = np.float32(0), np.float32(1)


@inner
def pooled_of(sizes: Sizes, area: Block, sequence: int) -> Block:
    """One sequence's rows of `pooled` or `pooled_grad`, as a matrix with a row a head."""
    stride = (sizes.width + 2 + LANES - 1) // LANES * LANES
    return Block(area.at + sequence * area.row, stride, 1)


@pasted
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
    """Scores → exponentials, not yet divided by their sum; `share` holds the sums so far.

    The class token is there from the start; where it is no key its score is −∞.
    """
    peaks = scratch.peak.at + place * scratch.peak.row
    tops, sums = scratch.top.at + sequence * scratch.top.row, share_of(scratch, sequence)
    for i in range(sizes.heads):
        row = attention.at + i * attention.row
        for t in range(sizes.length - start, sizes.span):
            memory[row + t] = MINUS_INFINITY
        peak = load(memory, row)
        for t in range(LANES, sizes.span, LANES):
            peak = maximum(peak, load(memory, row + t))
        memory[peaks + i] = largest(peak)
    for i in range(0, sizes.heads, LANES):
        before = load(memory, (tops if start else scratch.class_score.at) + i)
        top = maximum(before, load(memory, peaks + i))
        shrink = exp(sub(before, top))
        store(memory, peaks + i, top)
        store(memory, tops + i, top)
        store(memory, scratch.factor.at + i, shrink)
        if start:
            shrink = mul(shrink, load(memory, sums + i))
        store(memory, sums + i, shrink)
    for i in range(sizes.heads):
        row = attention.at + i * attention.row
        if start:
            scale_row(
                memory, pooled.at + i * pooled.row, sizes.width, memory[scratch.factor.at + i]
            )
        top, summed = splat(memory[peaks + i]), splat(ZERO)
        for t in range(0, sizes.span, LANES):
            weight = exp(sub(load(memory, row + t), top))
            summed = add(summed, weight)
            store(memory, row + t, weight)
        memory[sums + i] += total(summed)


@inner
def share_of(scratch: Scratch, sequence: int) -> int:
    return scratch.share.at + sequence * scratch.share.row


@inner
def scale_row(memory: Memory, at: int, count: int, factor: float) -> None:
    factors = splat(factor)
    for j in range(0, count, LANES):
        store(memory, at + j, mul(load(memory, at + j), factors))


@pasted
def finish(memory: Memory, sizes: Sizes, scratch: Scratch, pooled: Block, sequence: int) -> None:
    """Divide by the sums and append 1 and the class token's weight."""
    tops, shares = scratch.top.at + sequence * scratch.top.row, share_of(scratch, sequence)
    for i in range(0, sizes.heads, LANES):
        share = div(splat(ONE), load(memory, shares + i))
        store(memory, shares + i, share)
        own = exp(sub(load(memory, scratch.class_score.at + i), load(memory, tops + i)))
        store(memory, scratch.factor.at + i, mul(own, share))
    for i in range(sizes.heads):
        row = pooled.at + i * pooled.row
        scale_row(memory, row, sizes.width, memory[shares + i])
        memory[row + sizes.width] = ONE
        memory[row + sizes.width + 1] = memory[scratch.factor.at + i]


@pasted
def prepare(
    memory: Memory, sizes: Sizes, scratch: Scratch, pooled_grad: Block, sequence: int
) -> None:
    """Σ_t a_t·∂a_t of each head, kept in the unused column; the class token's score gradient."""
    pooled, score_grad = pooled_of(sizes, scratch.pooled, sequence), scratch.scores_grad
    for i in range(sizes.heads):
        row, own = pooled_grad.at + i * pooled_grad.row, pooled.at + i * pooled.row
        sums = splat(ZERO)
        for j in range(0, pooled.row, LANES):
            weight = mul(load(memory, own + j), load(memory, scratch.summed.at + j))
            sums = fma(load(memory, row + j), weight, sums)
        mean = total(sums)
        memory[row + sizes.width] = mean
        class_grad = memory[own + sizes.width + 1] * (memory[row + sizes.width + 1] - mean)
        memory[score_grad.at + i * score_grad.row + sizes.width + 1] += class_grad


@pasted
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
    peaks, below = scratch.peak.at + place * scratch.peak.row, sizes.heads * attention.row
    tops, shares = scratch.top.at + sequence * scratch.top.row, share_of(scratch, sequence)
    for i in range(0, sizes.heads, LANES):
        shrink = exp(sub(load(memory, peaks + i), load(memory, tops + i)))
        store(memory, scratch.factor.at + i, mul(shrink, load(memory, shares + i)))
    for i in range(sizes.heads):
        row = attention.at + i * attention.row
        share = splat(memory[scratch.factor.at + i])
        mean = splat(memory[pooled_grad.at + i * pooled_grad.row + sizes.width])
        for t in range(0, sizes.span, LANES):
            weight = mul(load(memory, row + t), share)
            slope = mul(weight, sub(load(memory, row + below + t), mean))
            store(memory, row + t, weight)
            store(memory, row + below + t, slope)
