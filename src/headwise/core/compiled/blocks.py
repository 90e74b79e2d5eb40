"""A block of four queries of a pack: its scores, weights, sums over keys, and their gradients.

A key or a value that was loaded serves four queries. The rows of a block's weights are `keys`
vectors apart; a causal mask is where a row ends, and behind it there are zeros.
"""

from typing import Any, NamedTuple

import numpy as np

from headwise.core.compiled.host import LANES, inner
from headwise.core.compiled.packs import ONE, ZERO, Memory, clear
from headwise.core.compiled.simd import add, div, exp, fma, load, maximum, mul, splat, store, sub

LOWEST = np.float32(-1e30)  # below any score, and finite
BLOCK = 4  # queries that are answered together


class HeadSizes(NamedTuple):
    """What is attended. Flags are 0 or 1."""

    sequences: int
    batch: int  # sequences of a member
    length: int  # tokens, all of which ask
    keys: int  # tokens that answer: the first so many
    heads: int
    qk_dim: int
    v_dim: int
    causal: int
    turned: int  # rotary positions
    normed: int  # queries and keys


@inner
def last_key(sizes: HeadSizes, first: int) -> int:
    """The keys that the block of queries from `first` on may see begin at 0 and end here."""
    return min(sizes.keys, first + BLOCK) if sizes.causal else sizes.keys


@inner
def dots(memory: Memory, rows: int, source: int, size: int, last: int, to: int, apart: int) -> None:
    """Products of four vectors of `size` coordinates, from `rows` on, with every key's."""
    step = size * LANES
    for j in range(0, last - 1, 2):
        a = b = c = d = e = f = g = h = splat(ZERO)
        for i in range(0, step, LANES):
            key, row = source + j * step + i, rows + i
            one, two = load(memory, key), load(memory, key + step)
            first, second = load(memory, row), load(memory, row + step)
            third, fourth = load(memory, row + 2 * step), load(memory, row + 3 * step)
            a, e = fma(first, one, a), fma(first, two, e)
            b, f = fma(second, one, b), fma(second, two, f)
            c, g = fma(third, one, c), fma(third, two, g)
            d, h = fma(fourth, one, d), fma(fourth, two, h)
        store_column(memory, to + j * LANES, apart, a, b, c, d)
        store_column(memory, to + (j + 1) * LANES, apart, e, f, g, h)
    for j in range(last - last % 2, last):
        a = b = c = d = splat(ZERO)
        for i in range(0, step, LANES):
            one, row = load(memory, source + j * step + i), rows + i
            a = fma(load(memory, row), one, a)
            b = fma(load(memory, row + step), one, b)
            c = fma(load(memory, row + 2 * step), one, c)
            d = fma(load(memory, row + 3 * step), one, d)
        store_column(memory, to + j * LANES, apart, a, b, c, d)


@inner
def store_column(memory: Memory, to: int, apart: int, a: Any, b: Any, c: Any, d: Any) -> None:
    """A vector to each of four rows."""
    store(memory, to, a)
    store(memory, to + apart, b)
    store(memory, to + 2 * apart, c)
    store(memory, to + 3 * apart, d)


@inner
def mixtures(
    memory: Memory, weights: int, keys: int, last: int, source: int, size: int, to: int
) -> None:
    """Four sums over keys, with the rows of `weights`, of vectors from `source` on."""
    row, step = keys * LANES, size * LANES
    for i in range(0, step - LANES, 2 * LANES):
        a = b = c = d = e = f = g = h = splat(ZERO)
        for j in range(last):
            value, at = source + j * step + i, weights + j * LANES
            one, two = load(memory, value), load(memory, value + LANES)
            first, second = load(memory, at), load(memory, at + row)
            third, fourth = load(memory, at + 2 * row), load(memory, at + 3 * row)
            a, e = fma(first, one, a), fma(first, two, e)
            b, f = fma(second, one, b), fma(second, two, f)
            c, g = fma(third, one, c), fma(third, two, g)
            d, h = fma(fourth, one, d), fma(fourth, two, h)
        store_column(memory, to + i, step, a, b, c, d)
        store_column(memory, to + i + LANES, step, e, f, g, h)
    for i in range((size - size % 2) * LANES, step, LANES):
        a = b = c = d = splat(ZERO)
        for j in range(last):
            one, at = load(memory, source + j * step + i), weights + j * LANES
            a = fma(load(memory, at), one, a)
            b = fma(load(memory, at + row), one, b)
            c = fma(load(memory, at + 2 * row), one, c)
            d = fma(load(memory, at + 3 * row), one, d)
        store_column(memory, to + i, step, a, b, c, d)


@inner
def spread_over_keys(
    memory: Memory, weights: int, keys: int, last: int, source: int, size: int, to: int
) -> None:
    """Add to every key's vector the four vectors from `source` on, weighted."""
    row, step = keys * LANES, size * LANES
    for j in range(0, last - 1, 2):
        at = weights + j * LANES
        a, b = load(memory, at), load(memory, at + row)
        c, d = load(memory, at + 2 * row), load(memory, at + 3 * row)
        at += LANES
        e, f = load(memory, at), load(memory, at + row)
        g, h = load(memory, at + 2 * row), load(memory, at + 3 * row)
        for i in range(0, step, LANES):
            target, of = to + j * step + i, source + i
            first, second = load(memory, of), load(memory, of + step)
            third, fourth = load(memory, of + 2 * step), load(memory, of + 3 * step)
            one = fma(b, second, fma(a, first, load(memory, target)))
            two = fma(f, second, fma(e, first, load(memory, target + step)))
            store(memory, target, fma(d, fourth, fma(c, third, one)))
            store(memory, target + step, fma(h, fourth, fma(g, third, two)))
    for j in range(last - last % 2, last):
        at = weights + j * LANES
        a, b = load(memory, at), load(memory, at + row)
        c, d = load(memory, at + 2 * row), load(memory, at + 3 * row)
        for i in range(0, step, LANES):
            target, of = to + j * step + i, source + i
            value = fma(a, load(memory, of), load(memory, target))
            value = fma(b, load(memory, of + step), value)
            value = fma(c, load(memory, of + 2 * step), value)
            store(memory, target, fma(d, load(memory, of + 3 * step), value))


@inner
def soften(
    memory: Memory,
    sizes: HeadSizes,
    weights: int,
    first: int,
    last: int,
    kept: Memory,
    kept_at: int,
) -> None:
    """Scores → weights, for four queries; their largest scores and inverse sums are kept."""
    for i in range(BLOCK):
        row = weights + i * sizes.keys * LANES
        stop = min(last, first + i + 1) if sizes.causal else last
        top, summed = splat(LOWEST), splat(ZERO)
        for at in range(row, row + stop * LANES, LANES):
            top = maximum(top, load(memory, at))
        for at in range(row, row + stop * LANES, LANES):
            weight = exp(sub(load(memory, at), top))
            summed = add(summed, weight)
            store(memory, at, weight)
        share = div(splat(ONE), summed)
        for at in range(row, row + stop * LANES, LANES):
            store(memory, at, mul(load(memory, at), share))
        clear(memory, row + stop * LANES, (last - stop) * LANES)
        store(kept, kept_at + 2 * i * LANES, top)
        store(kept, kept_at + (2 * i + 1) * LANES, share)


@inner
def score_slopes(
    memory: Memory, sizes: HeadSizes, kept: Memory, kept_at: int, first: int, last: int,
    asking: int, key: int, value: int, pull: int, weights: int, changes: int,
) -> None:  # fmt: skip
    """Weights of four queries, and the gradients of their scores."""
    qk, values, row = sizes.qk_dim, sizes.v_dim, sizes.keys * LANES
    dots(memory, asking, key, qk, last, weights, row)
    dots(memory, pull, value, values, last, changes, row)
    for i in range(BLOCK):
        stop = min(last, first + i + 1) if sizes.causal else last
        top, share = load(kept, kept_at + 2 * i * LANES), load(kept, kept_at + (2 * i + 1) * LANES)
        mean = splat(ZERO)
        own, change = weights + i * row, changes + i * row
        for at in range(0, stop * LANES, LANES):
            weight = mul(exp(sub(load(memory, own + at), top)), share)
            store(memory, own + at, weight)
            mean = fma(weight, load(memory, change + at), mean)
        for at in range(0, stop * LANES, LANES):
            moved = sub(load(memory, change + at), mean)
            store(memory, change + at, mul(load(memory, own + at), moved))
        clear(memory, own + stop * LANES, (last - stop) * LANES)
        clear(memory, change + stop * LANES, (last - stop) * LANES)
