"""Linear attention's weights, in the place of a softmax (`nets/variants/feature_pool.py`).

With keys k_j = (W_K x̂)_j, queries q_j, j over the coordinates of head i, φ(u) = exp(min(u, 0)) +
max(u, 0), and c_i the class token's sum:

    w_i(t) = Σ_j φ(q_j)·φ(k_j(t)),   S_i = Σ_t w_i(t) + c_i,   a_i = w_i/S_i
    ∂w_i = (∂a_i − Σ a·∂a)/S_i,   ∂k_j = ∂w_i·φ(q_j)·φ'(k_j),   ∂φ(q_j) = Σ ∂w_i·φ(k_j)

where φ' = min(φ, 1). In the rows of a piece the features lie below the weights, and are replaced by
the keys' gradients; below them are the gradients of the weights.
"""

import numpy as np

from headwise.core.compiled.host import LANES, inner, pasted
from headwise.core.compiled.simd import (
    add,
    exp,
    fma,
    load,
    maximum,
    minimum,
    mul,
    splat,
    store,
    sub,
    total,
)
from headwise.training.fused.layout import Scratch, Sizes
from headwise.training.fused.products import Block, Memory

ZERO, ONE = np.float32(0), np.float32(1)
LEAST = np.float32(1e-6)  # of a sum of weights


@inner
def _feature(value: float) -> np.float32:
    """φ of a number."""
    return np.float32(value + ONE if value > 0 else np.exp(value))


@pasted
def make_features(memory: Memory, sizes: Sizes, scratch: Scratch) -> None:
    """φ of the queries and, in the row below, of the class token's keys."""
    features, scores = scratch.features, scratch.scores
    for j in range(sizes.score_maps):
        constant = scores.at + j * scores.row + sizes.width
        memory[features.at + j] = _feature(memory[scratch.vector.at + j])
        key = memory[constant] + memory[constant + 1]
        memory[features.at + features.row + j] = _feature(key)


@inner
def class_sum(memory: Memory, sizes: Sizes, scratch: Scratch, head: int) -> np.float32:
    """c_i."""
    features, summed = scratch.features, ZERO
    for at in range(features.at + head * sizes.qk_dim, features.at + (head + 1) * sizes.qk_dim):
        summed += memory[at] * memory[at + features.row]
    return summed


@pasted
def weigh(
    memory: Memory, sizes: Sizes, scratch: Scratch, attention: Block, columns: int, pack: int,
    piece: int,
) -> None:  # fmt: skip
    """Keys → features → weights, not yet divided by their sum; `share` holds the sums so far."""
    wide, zero = columns * LANES, splat(ZERO)
    for i in range(sizes.heads):
        row = attention.at + i * attention.row
        for t in range(row, row + wide, LANES):
            store(memory, t, zero)
        for j in range(i * sizes.qk_dim, (i + 1) * sizes.qk_dim):
            query = splat(memory[scratch.features.at + j])
            shift = splat(memory[scratch.scores.at + j * scratch.scores.row + sizes.width])
            below = (sizes.heads + j - i) * attention.row
            for t in range(row, row + wide, LANES):
                key = add(load(memory, t + below), shift)
                feature = add(exp(minimum(key, zero)), maximum(zero, key))
                store(memory, t + below, feature)
                store(memory, t, fma(query, feature, load(memory, t)))
        of_pack = (pack * sizes.heads + i) * LANES
        sum_at = scratch.share.at + of_pack
        summed = load(memory, scratch.class_score.at + of_pack if piece == 0 else sum_at)
        for t in range(row, row + wide, LANES):
            summed = add(summed, load(memory, t))
        last = piece == sizes.pieces - 1
        store(memory, sum_at, maximum(splat(LEAST), summed) if last else summed)
        store(memory, scratch.factor.at + i * LANES, splat(ONE))  # nothing is rescaled


@pasted
def weigh_back(
    memory: Memory, sizes: Sizes, scratch: Scratch, attention: Block, columns: int, pack: int
) -> None:
    """Weights → attention; gradient of attention → of the weights, of the keys, of the queries."""
    wide, sums, one = columns * LANES, scratch.scores_sums, splat(ONE)
    for i in range(sizes.heads):
        row, mean = attention.at + i * attention.row, load(memory, scratch.mean.at + i * LANES)
        share = load(memory, scratch.share.at + (pack * sizes.heads + i) * LANES)
        slopes = (sizes.heads + sizes.score_maps) * attention.row
        for t in range(row, row + wide, LANES):
            store(memory, t, mul(load(memory, t), share))
            store(memory, t + slopes, mul(sub(load(memory, t + slopes), mean), share))
        for j in range(i * sizes.qk_dim, (i + 1) * sizes.qk_dim):
            query = splat(memory[scratch.features.at + j])
            below = (sizes.heads + j - i) * attention.row
            shift_at = sums.at + j * sums.row + sizes.width * LANES
            query_at = scratch.query_sums.at + j * LANES
            shift_grad, query_grad = load(memory, shift_at), load(memory, query_at)
            for t in range(row, row + wide, LANES):
                feature, slope = load(memory, t + below), load(memory, t + slopes)
                query_grad = fma(slope, feature, query_grad)
                key_grad = mul(mul(slope, query), minimum(feature, one))
                shift_grad = add(shift_grad, key_grad)
                store(memory, t + below, key_grad)
            store(memory, shift_at, shift_grad)
            store(memory, query_at, query_grad)


@pasted
def feature_slopes(memory: Memory, sizes: Sizes, scratch: Scratch) -> None:
    """Once a step: from the sums, the gradients of the class token's keys and of the queries."""
    features, grads = scratch.features, scratch.scores_grad
    for i in range(sizes.heads):
        first = i * sizes.qk_dim
        own_grad = memory[grads.at + first * grads.row + sizes.width + 1]  # ∂c_i
        for j in range(first, first + sizes.qk_dim):
            query, own = memory[features.at + j], memory[features.at + features.row + j]
            constant = grads.at + j * grads.row + sizes.width
            key_grad = own_grad * query * min(own, ONE)
            memory[constant] += key_grad  # the class token's key has the constant too
            memory[constant + 1] = key_grad
            query_grad = total(load(memory, scratch.query_sums.at + j * LANES)) + own_grad * own
            memory[scratch.vector_grad.at + j] = query_grad * min(query, ONE)
