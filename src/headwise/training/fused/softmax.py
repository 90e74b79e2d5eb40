"""Softmax over the tokens of a pack, piece by piece, and its gradient. A sequence is a lane.

Exponents refer to the largest score so far (`peak`); when a later piece has a larger one, what was
summed is rescaled, so any length needs one pass. The class token is there from the start; where it
is no key its score is −∞, hence it has no weight and no gradient.
"""

import numpy as np

from headwise.core.compiled.host import LANES, inner, pasted
from headwise.core.compiled.simd import add, div, exp, fma, load, maximum, mul, splat, store, sub
from headwise.training.fused.fold import key_map
from headwise.training.fused.layout import Scratch, Sizes
from headwise.training.fused.products import Block, Memory

ZERO, ONE = np.float32(0), np.float32(1)
LOWEST = np.float32(-1e30)  # below any score, and finite: −∞ minus −∞ would be no number


@pasted
def soften(
    memory: Memory, sizes: Sizes, scratch: Scratch, attention: Block, columns: int, pack: int,
    piece: int,
) -> None:  # fmt: skip
    """Scores → exponentials, not yet divided by their sum; `share` holds the sums so far."""
    first = piece == 0
    for i in range(sizes.heads):
        row, block = attention.at + i * attention.row, pack * sizes.pieces + piece
        top_at = of_head(sizes, scratch.top, pack, i)
        sum_at = of_head(sizes, scratch.share, pack, i)
        before = load(memory, of_head(sizes, scratch.class_score, pack, i) if first else top_at)
        top = maximum(before, splat(LOWEST))  # all that was seen so far may be hidden
        for t in range(0, columns * LANES, LANES):
            top = maximum(top, load(memory, row + t))
        shrink = exp(sub(before, top))
        store(memory, scratch.factor.at + i * LANES, shrink)
        store(memory, of_head(sizes, scratch.peak, block, i), top)
        store(memory, top_at, top)
        summed = shrink if first else mul(shrink, load(memory, sum_at))
        for t in range(0, columns * LANES, LANES):
            weight = exp(sub(load(memory, row + t), top))
            summed = add(summed, weight)
            store(memory, row + t, weight)
        store(memory, sum_at, summed)


@inner
def of_head(sizes: Sizes, area: Block, index: int, head: int) -> int:
    """A head's vector among those of the index-th pack or piece."""
    return area.at + (index * sizes.heads + head) * LANES


@pasted
def finish(memory: Memory, sizes: Sizes, scratch: Scratch, pack: int) -> None:
    """Divide by the sums, and append the class token's weight."""
    pooled = scratch.pooled
    for i in range(sizes.heads):
        share_at = of_head(sizes, scratch.share, pack, i)
        share = div(splat(ONE), load(memory, share_at))
        store(memory, share_at, share)
        own = load(memory, of_head(sizes, scratch.class_score, pack, i))
        if not sizes.by_features:
            own = exp(sub(own, load(memory, of_head(sizes, scratch.top, pack, i))))
        target = pooled.at + i * sizes.pooled_rows * pooled.row + pack * LANES
        source = scratch.sums.at + i * sizes.width * LANES
        for j in range(sizes.width):
            value = mul(load(memory, source + j * LANES), share)
            store(memory, target + j * pooled.row, value)
        store(memory, target + (sizes.width + 1) * pooled.row, mul(own, share))


@pasted
def prepare(memory: Memory, sizes: Sizes, scratch: Scratch, first: int, pack: int) -> None:
    """Σ_t a_t·∂a_t of each head, and the gradient of the class token's score.

    With o = V·P + b the head's output, Σ_t a_t·∂a_t = Pᵀ·∂P = Pᵀ·Vᵀ·∂o = (o − b)ᵀ·∂o: a fourth of
    the work at a fourth as many values as units, and no less exact than o itself.
    """
    heads, slopes, values = scratch.heads, scratch.heads_grad, scratch.values
    for i in range(sizes.heads):
        mean, row = splat(ZERO), values.at + key_map(sizes, i) * sizes.v_dim * values.row
        for v in range(sizes.v_dim):
            bias = memory[row + v * values.row + sizes.width]
            at = (i * sizes.v_dim + v) * heads.row + first
            output = sub(load(memory, heads.at + at + pack * LANES), splat(bias))
            mean = fma(output, load(memory, slopes.at + at + pack * LANES), mean)
        store(memory, scratch.mean.at + i * LANES, mean)
        row, sums = i * sizes.pooled_rows + sizes.width + 1, scratch.scores_sums
        if sizes.by_features:  # ∂c_i, in the row of the head's first map
            weight = load(memory, of_head(sizes, scratch.share, pack, i))
        else:
            weight = load(memory, scratch.pooled.at + row * scratch.pooled.row + pack * LANES)
        slope = load(memory, scratch.pull.at + pack * scratch.pull.row + row * LANES)
        first_map = i * sizes.score_maps // sizes.heads
        at = sums.at + first_map * sums.row + (sizes.width + 1) * LANES
        store(memory, at, fma(weight, sub(slope, mean), load(memory, at)))


@pasted
def soften_back(
    memory: Memory, sizes: Sizes, scratch: Scratch, attention: Block, columns: int, pack: int,
    piece: int,
) -> None:  # fmt: skip
    """Exponentials → attention; gradient of attention → of the scores, in the rows below."""
    below, block = sizes.heads * attention.row, pack * sizes.pieces + piece
    for i in range(sizes.heads):
        row, mean = attention.at + i * attention.row, load(memory, scratch.mean.at + i * LANES)
        peak = load(memory, of_head(sizes, scratch.peak, block, i))
        top = load(memory, of_head(sizes, scratch.top, pack, i))
        share = mul(exp(sub(peak, top)), load(memory, of_head(sizes, scratch.share, pack, i)))
        for t in range(row, row + columns * LANES, LANES):
            weight = mul(load(memory, t), share)
            slope = mul(weight, sub(load(memory, t + below), mean))
            store(memory, t, weight)
            store(memory, t + below, slope)
