"""Tokens' rows ↔ vectors whose lanes are heads of sequences; and what is done to a head's vectors.

Item i is head i mod `heads` of sequence i // `heads`. A pack are the LANES items from `first` on;
some lanes of the last one may be empty. Coordinate r of token t is a vector at `at` + (t·size +
r)·LANES.
"""

from typing import Any

import numpy as np

from headwise.core.compiled.host import LANES, inner
from headwise.core.compiled.quads import gather_four, scatter_four
from headwise.core.compiled.simd import add, div, fma, load, mul, splat, sqrt, store, sub

Memory = Any  # np.ndarray of float32, as numba sees it
Places = Any  # np.ndarray of integers, one a lane
ZERO, ONE = np.float32(0), np.float32(1)
EPSILON = np.float32(1e-6)  # as in `headwise.nets.compiled`


@inner
def clear(memory: Memory, at: int, count: int) -> None:
    """Write zeros."""
    for place in range(at, at + count, LANES):
        store(memory, place, splat(ZERO))


@inner
def locate(places: Places, first: int, items: int, heads: int, sequence: int, size: int) -> None:
    """Where each item's numbers begin; a sequence has so many. Empty lanes double the first."""
    for lane in range(LANES):
        item = first + lane if first + lane < items else first
        places[lane] = item // heads * sequence + item % heads * size


@inner
def pack(
    memory: Memory, at: int, source: Memory, places: Places, section: int, tokens: int, row: int,
    size: int,
) -> None:  # fmt: skip
    """Read a pack's tokens: `size` numbers each from `section` on; a token's row has `row`."""
    whole = size - size % 4
    for t in range(tokens):
        here = section + t * row
        for r in range(0, whole, 4):
            gather_four(memory, at + (t * size + r) * LANES, source, places, here + r)
        for r in range(whole, size):
            to = at + (t * size + r) * LANES
            for lane in range(LANES):
                memory[to + lane] = source[places[lane] + here + r]


@inner
def unpack(
    memory: Memory, at: int, target: Memory, places: Places, count: int, section: int, tokens: int,
    row: int, size: int,
) -> None:  # fmt: skip
    """The inverse of `pack`, for the first `count` lanes."""
    whole = size - size % 4 if count == LANES else 0
    for t in range(tokens):
        of, here = at + t * size * LANES, section + t * row
        for r in range(0, whole, 4):
            scatter_four(memory, of + r * LANES, target, places, here + r)
        for lane in range(count):
            to = places[lane] + here
            for r in range(whole, size):
                target[to + r] = memory[of + r * LANES + lane]


@inner
def pack_gain(
    memory: Memory, at: int, gains: Memory, own: int, first: int, items: int, heads: int,
    batch: int, size: int,
) -> None:  # fmt: skip
    """The gains of a pack's heads, from gains[own] on: every member has its own."""
    clear(memory, at, size * LANES)
    for lane in range(min(LANES, items - first)):
        sequence, head = (first + lane) // heads, (first + lane) % heads
        place = own + (sequence // batch * heads + head) * size
        for r in range(size):
            memory[at + r * LANES + lane] = gains[place + r]


@inner
def unpack_gain(
    memory: Memory, at: int, slopes: Memory, own: int, first: int, items: int, heads: int,
    batch: int, size: int,
) -> None:  # fmt: skip
    """Add a pack's gradients to those of the gains, item by item: a member's as if alone."""
    for lane in range(min(LANES, items - first)):
        sequence, head = (first + lane) // heads, (first + lane) % heads
        place = own + (sequence // batch * heads + head) * size
        for r in range(size):
            slopes[place + r] += memory[at + r * LANES + lane]


@inner
def norm(memory: Memory, at: int, tokens: int, size: int, gain: int, kept: int) -> None:
    """x → γ ⊙ x/RMS(x) for each token; x/RMS(x) and 1/RMS(x) are kept."""
    step, inverses = size * LANES, kept + tokens * size * LANES
    for t in range(tokens):
        squares = splat(ZERO)
        for r in range(0, step, LANES):
            x = load(memory, at + t * step + r)
            squares = fma(x, x, squares)
        mean = fma(squares, splat(np.float32(1 / size)), splat(EPSILON))
        inverse = div(splat(ONE), sqrt(mean))
        store(memory, inverses + t * LANES, inverse)
        for r in range(0, step, LANES):
            x = mul(load(memory, at + t * step + r), inverse)
            store(memory, kept + t * step + r, x)
            store(memory, at + t * step + r, mul(x, load(memory, gain + r)))


@inner
def norm_back(
    memory: Memory, at: int, tokens: int, size: int, gain: int, gain_slope: int, kept: int
) -> None:
    """Gradients of γ ⊙ x/RMS(x) → those of x and of γ: formulas are in `headwise.nets.compiled`."""
    step, inverses = size * LANES, kept + tokens * size * LANES
    clear(memory, gain_slope, step)
    for t in range(tokens):
        mean = splat(ZERO)
        for r in range(0, step, LANES):
            by_gain = mul(load(memory, at + t * step + r), load(memory, kept + t * step + r))
            store(memory, gain_slope + r, add(load(memory, gain_slope + r), by_gain))
            mean = fma(by_gain, load(memory, gain + r), mean)
        mean = mul(mean, splat(np.float32(1 / size)))
        inverse = load(memory, inverses + t * LANES)
        for r in range(0, step, LANES):
            slope = mul(load(memory, at + t * step + r), load(memory, gain + r))
            slope = sub(slope, mul(load(memory, kept + t * step + r), mean))
            store(memory, at + t * step + r, mul(slope, inverse))


@inner
def turn(
    memory: Memory, at: int, tokens: int, size: int, turns: Memory, length: int, way: np.float32
) -> None:
    """Rotary positions, or (way −1) their inverse; `turns`: cosines and, behind them, sines."""
    half = size // 2
    for t in range(tokens):
        for i in range(half):
            place = at + (t * size + i) * LANES
            a, b = load(memory, place), load(memory, place + half * LANES)
            cosine = splat(turns[t * half + i])
            sine = splat(way * turns[(length + t) * half + i])
            store(memory, place, sub(mul(a, cosine), mul(b, sine)))
            store(memory, place + half * LANES, fma(b, cosine, mul(a, sine)))
