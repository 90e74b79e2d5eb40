"""GELU, ReLU and the RMS norm of rows of numbers, compiled, with their backward passes.

GELU's slope Φ(x) + x·φ(x) costs next to nothing beside x·Φ(x), so it is kept on the way forward and
the way back is one product. The norm's formulas are in `headwise.nets.compiled`.
"""

import numpy as np

from headwise.core.compiled.host import LANES, entry
from headwise.core.compiled.packs import EPSILON, ONE, ZERO, Memory, clear
from headwise.core.compiled.simd import (
    add,
    fma,
    gelu,
    load,
    mul,
    splat,
    store,
    sub,
    total,
    where_positive,
)

_TOGETHER = 32  # rows whose gradients of the gain are summed before they join the others'


@entry
def gelu_forward(given: Memory, values: Memory, slopes: Memory) -> None:
    """The values may take the place of what is given."""
    count, rest = len(given), np.zeros(LANES, np.float32)
    whole = count - count % LANES
    for at in range(0, whole, LANES):
        value, slope = gelu(load(given, at))
        store(values, at, value)
        store(slopes, at, slope)
    for i in range(whole, count):
        rest[i - whole] = given[i]
    value, slope = gelu(load(rest, 0))
    store(rest, 0, value)
    for i in range(whole, count):
        values[i] = rest[i - whole]
    store(rest, 0, slope)
    for i in range(whole, count):
        slopes[i] = rest[i - whole]


@entry
def relu_backward(values: Memory, slopes: Memory) -> None:
    """Slopes of the values become slopes of what they were made from."""
    whole = len(values) - len(values) % LANES
    for at in range(0, whole, LANES):
        store(slopes, at, where_positive(load(values, at), load(slopes, at)))
    for i in range(whole, len(values)):
        if not values[i] > ZERO:
            slopes[i] = ZERO


@entry
def norm_forward(given: Memory, gains: Memory, out: Memory, inverses: Memory, size: int) -> None:
    """Rows of `size` numbers, a multiple of LANES; as many rows in turn share a row of gains."""
    count = len(inverses)
    share = count // (len(gains) // size)
    for row in range(count):
        at, gain = row * size, row // share * size
        squares = splat(ZERO)
        for i in range(0, size, LANES):
            vector = load(given, at + i)
            squares = fma(vector, vector, squares)
        inverse = ONE / np.sqrt(total(squares) / np.float32(size) + EPSILON)
        inverses[row] = inverse
        scale = splat(inverse)
        for i in range(0, size, LANES):
            store(out, at + i, mul(mul(load(given, at + i), scale), load(gains, gain + i)))


@entry
def norm_backward(
    given: Memory, gains: Memory, inverses: Memory, slopes: Memory, given_slopes: Memory,
    gain_slopes: Memory, some: Memory, size: int,
) -> None:  # fmt: skip
    """`gain_slopes` begin as zeros; `some` is a row of scratch."""
    count = len(inverses)
    share = count // (len(gains) // size)
    for first in range(0, count, share):
        gain = first // share * size
        for start in range(first, first + share, _TOGETHER):
            clear(some, 0, size)
            for row in range(start, min(start + _TOGETHER, first + share)):
                at, inverse, dots = row * size, inverses[row], splat(ZERO)
                scale = splat(inverse)
                for i in range(0, size, LANES):
                    by_gain = mul(load(slopes, at + i), mul(load(given, at + i), scale))
                    store(some, i, add(load(some, i), by_gain))
                    dots = fma(by_gain, load(gains, gain + i), dots)
                mean = splat(inverse * total(dots) / np.float32(size))
                for i in range(0, size, LANES):
                    pull = mul(load(slopes, at + i), load(gains, gain + i))
                    moved = sub(pull, mul(load(given, at + i), mean))
                    store(given_slopes, at + i, mul(moved, scale))
            for i in range(0, size, LANES):
                store(gain_slopes, gain + i, add(load(gain_slopes, gain + i), load(some, i)))
