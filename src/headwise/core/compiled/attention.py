"""Attention of many short sequences, compiled: a head of a sequence is a lane.

Queries, keys and values stand side by side in a token's row, as one linear map makes them. LANES
pairs of sequence and head are brought into vectors ("packed"), one for each token and coordinate;
then a softmax over keys is plain arithmetic on vectors, whatever the length. Nothing of the size
of the scores is kept: the backward pass computes them again from each query's largest score and
sum.
"""

import numpy as np

from headwise.core.compiled.blocks import (
    BLOCK,
    HeadSizes,
    dots,
    last_key,
    mixtures,
    score_slopes,
    soften,
    spread_over_keys,
)  # fmt: skip
from headwise.core.compiled.host import LANES, entry, inner
from headwise.core.compiled.packs import (
    ONE,
    Memory,
    Places,
    clear,
    locate,
    norm,
    norm_back,
    pack,
    pack_gain,
    turn,
    unpack,
    unpack_gain,
)  # fmt: skip
from headwise.core.compiled.simd import load, mul, splat, store


def padded_queries(sizes: HeadSizes) -> int:
    """Queries, up to whole blocks."""
    return -(-sizes.length // BLOCK) * BLOCK


padded = inner(padded_queries)


def scratch_floats(sizes: HeadSizes) -> int:
    """How much memory `forward` and `backward` take beside their arguments."""
    both, keys = padded_queries(sizes) + sizes.keys, sizes.keys
    packed = 2 * both * (sizes.qk_dim + sizes.v_dim) + 2 * BLOCK * keys
    return LANES * (packed + both * (sizes.qk_dim + 1) + 4 * sizes.qk_dim)


@inner
def row_of(sizes: HeadSizes) -> int:
    """Numbers of a token: its queries, keys and values."""
    return sizes.heads * (2 * sizes.qk_dim + sizes.v_dim)


@entry
def forward(
    rows: Memory, turns: Memory, gains: Memory, mixed: Memory, kept: Memory, scratch: Memory,
    sizes: HeadSizes,
) -> None:  # fmt: skip
    """mixed: what every head of every token reads, side by side."""
    qk, values, keys, queries = sizes.qk_dim, sizes.v_dim, sizes.keys, padded(sizes)
    items, width = sizes.sequences * sizes.heads, sizes.heads * sizes.v_dim
    query = 0
    key = query + queries * qk * LANES
    value = key + keys * qk * LANES
    out = value + keys * values * LANES
    weights = out + queries * values * LANES
    rest = weights + BLOCK * keys * LANES
    of_qk, of_values = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for first in range(0, items, LANES):
        enter(scratch, rows, turns, gains, sizes, first, query, key, value, rest, of_qk, of_values)
        for t in range(0, queries, BLOCK):
            last = last_key(sizes, t)
            dots(scratch, query + t * qk * LANES, key, qk, last, weights, keys * LANES)
            place = 2 * (first // LANES * queries + t) * LANES
            soften(scratch, sizes, weights, t, last, kept, place)
            mixtures(scratch, weights, keys, last, value, values, out + t * values * LANES)
        locate(of_values, first, items, sizes.heads, sizes.length * width, values)
        count = min(LANES, items - first)
        unpack(scratch, out, mixed, of_values, count, 0, sizes.length, width, values)


@inner
def enter(
    memory: Memory, rows: Memory, turns: Memory, gains: Memory, sizes: HeadSizes, first: int,
    query: int, key: int, value: int, rest: int, of_qk: Places, of_values: Places,
) -> None:  # fmt: skip
    """Pack queries, keys and values; norm, turn and scale. Behind `rest`: what norms keep."""
    qk, heads, row = sizes.qk_dim, sizes.heads, row_of(sizes)
    items, tokens = sizes.sequences * heads, sizes.length
    locate(of_qk, first, items, heads, tokens * row, qk)
    locate(of_values, first, items, heads, tokens * row, sizes.v_dim)
    pack(memory, query, rows, of_qk, 0, tokens, row, qk)
    clear(memory, query + tokens * qk * LANES, (padded(sizes) - tokens) * qk * LANES)
    pack(memory, key, rows, of_qk, heads * qk, sizes.keys, row, qk)
    pack(memory, value, rows, of_values, 2 * heads * qk, sizes.keys, row, sizes.v_dim)
    if sizes.normed:
        own = sizes.sequences // sizes.batch * heads * qk  # gains of queries; behind them keys'
        pack_gain(memory, rest, gains, 0, first, items, heads, sizes.batch, qk)
        pack_gain(memory, rest + qk * LANES, gains, own, first, items, heads, sizes.batch, qk)
        hats = rest + 4 * qk * LANES
        norm(memory, query, tokens, qk, rest, hats)
        norm(memory, key, sizes.keys, qk, rest + qk * LANES, hats + tokens * (qk + 1) * LANES)
    if sizes.turned:
        turn(memory, query, tokens, qk, turns, tokens, ONE)
        turn(memory, key, sizes.keys, qk, turns, tokens, ONE)
    scale = splat(np.float32(1 / np.sqrt(qk)))
    for at in range(query, query + tokens * qk * LANES, LANES):
        store(memory, at, mul(load(memory, at), scale))


@entry
def backward(
    rows: Memory, turns: Memory, gains: Memory, slopes: Memory, kept: Memory, scratch: Memory,
    row_slopes: Memory, gain_slopes: Memory, sizes: HeadSizes,
) -> None:  # fmt: skip
    """From the gradients of what heads read, those of the rows and of the gains."""
    qk, values, keys, queries = sizes.qk_dim, sizes.v_dim, sizes.keys, padded(sizes)
    heads, tokens, row = sizes.heads, sizes.length, row_of(sizes)
    items, width = sizes.sequences * heads, heads * values
    query = 0
    key = query + queries * qk * LANES
    value = key + keys * qk * LANES
    slope = value + keys * values * LANES
    query_slope = slope + queries * values * LANES
    key_slope = query_slope + queries * qk * LANES
    value_slope = key_slope + keys * qk * LANES
    weights = value_slope + keys * values * LANES
    changes = weights + BLOCK * keys * LANES
    rest = changes + BLOCK * keys * LANES
    of_qk, of_values = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    of_slopes = np.empty(LANES, np.int64)
    for first in range(0, items, LANES):
        enter(scratch, rows, turns, gains, sizes, first, query, key, value, rest, of_qk, of_values)
        locate(of_slopes, first, items, heads, tokens * width, values)
        pack(scratch, slope, slopes, of_slopes, 0, tokens, width, values)
        clear(scratch, slope + tokens * values * LANES, (queries - tokens) * values * LANES)
        clear(scratch, key_slope, keys * (qk + values) * LANES)
        for t in range(0, queries, BLOCK):
            last = last_key(sizes, t)
            asking, pull = query + t * qk * LANES, slope + t * values * LANES
            place = 2 * (first // LANES * queries + t) * LANES
            score_slopes(
                scratch, sizes, kept, place, t, last, asking, key, value, pull, weights, changes
            )
            mixtures(scratch, changes, keys, last, key, qk, query_slope + t * qk * LANES)
            spread_over_keys(scratch, changes, keys, last, asking, qk, key_slope)
            spread_over_keys(scratch, weights, keys, last, pull, values, value_slope)
        leave(scratch, turns, sizes, first, query_slope, key_slope, rest, gain_slopes)
        count, section = min(LANES, items - first), heads * qk
        unpack(scratch, query_slope, row_slopes, of_qk, count, 0, tokens, row, qk)
        unpack(scratch, key_slope, row_slopes, of_qk, count, section, keys, row, qk)
        unpack(scratch, value_slope, row_slopes, of_values, count, 2 * section, keys, row, values)


@inner
def leave(
    memory: Memory, turns: Memory, sizes: HeadSizes, first: int, query: int, key: int, rest: int,
    gain_slopes: Memory,
) -> None:  # fmt: skip
    """What `enter` did to queries and keys, backwards, to their gradients."""
    qk, heads, tokens, keys = sizes.qk_dim, sizes.heads, sizes.length, sizes.keys
    scale = splat(np.float32(1 / np.sqrt(qk)))
    for at in range(query, query + tokens * qk * LANES, LANES):
        store(memory, at, mul(load(memory, at), scale))
    if sizes.turned:
        turn(memory, query, tokens, qk, turns, tokens, -ONE)
        turn(memory, key, keys, qk, turns, tokens, -ONE)
    if sizes.normed:
        own, items = sizes.sequences // sizes.batch * heads * qk, sizes.sequences * heads
        gain, gain_slope, hats = rest, rest + 2 * qk * LANES, rest + 4 * qk * LANES
        norm_back(memory, query, tokens, qk, gain, gain_slope, hats)
        unpack_gain(memory, gain_slope, gain_slopes, 0, first, items, heads, sizes.batch, qk)
        gain, hats = gain + qk * LANES, hats + tokens * (qk + 1) * LANES
        norm_back(memory, key, keys, qk, gain, gain_slope, hats)
        unpack_gain(memory, gain_slope, gain_slopes, own, first, items, heads, sizes.batch, qk)
