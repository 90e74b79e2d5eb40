"""Norms of rows of any size, compiled, with their backward passes.

A row s, to which a bias may be added first, has the mean μ and the inverse spread v:

    n = v·(s − μ),   y = γ ⊙ n + β

    layer norm:   μ its mean, v = 1/√(mean (s − μ)² + 1e-5),   γ and β a number a coordinate
    length:       μ = 0,      v = 1/max(|s|, 1e-12),           γ one number, β = 0

Backwards, with g = γ ⊙ ∂y, where averages are sums and the middle term is absent for the length:

    ∂s = v·(g − mean g − n·mean(g ⊙ n)),   ∂γ = Σ ∂y ⊙ n,   ∂β = Σ ∂y,   ∂bias = Σ ∂s

Sums over rows are a member's own and go from row to row, whoever is computed beside it.
"""

import numpy as np

from headwise.core.compiled.host import LANES, entry
from headwise.core.compiled.packs import ONE, ZERO, Memory, clear
from headwise.core.compiled.simd import add, fma, load, mul, splat, store, sub, total

_SHORTEST, _EPSILON = np.float32(1e-12), np.float32(1e-5)
_TOGETHER = 32  # rows whose slopes are summed before they join the others'


@entry
def normal_forward(
    given: Memory, bias: Memory, gains: Memory, shifts: Memory, out: Memory, means: Memory,
    inverses: Memory, size: int, share: int, centred: bool,
) -> None:  # fmt: skip
    """Rows of `size` numbers, `share` of them a member's; a bias is added to them in place."""
    biased, whole = len(bias) > 1, size - size % LANES
    for row in range(len(inverses)):
        at, of = row * size, row // share * size
        if biased:
            for i in range(0, whole, LANES):
                store(given, at + i, add(load(given, at + i), load(bias, of + i)))
            for i in range(whole, size):
                given[at + i] += bias[of + i]
        mean = ZERO
        if centred:
            sums = splat(ZERO)
            for i in range(0, whole, LANES):
                sums = add(sums, load(given, at + i))
            mean = total(sums)
            for i in range(whole, size):
                mean += given[at + i]
            mean /= np.float32(size)
        sums, middle = splat(ZERO), splat(mean)
        for i in range(0, whole, LANES):
            apart = sub(load(given, at + i), middle)
            sums = fma(apart, apart, sums)
        squares = total(sums)
        for i in range(whole, size):
            squares += (given[at + i] - mean) * (given[at + i] - mean)
        if centred:
            inverse = ONE / np.sqrt(squares / np.float32(size) + _EPSILON)
            scale = splat(inverse)
            for i in range(0, whole, LANES):
                normal = mul(sub(load(given, at + i), middle), scale)
                store(out, at + i, fma(normal, load(gains, of + i), load(shifts, of + i)))
            for i in range(whole, size):
                normal_i = (given[at + i] - mean) * inverse
                out[at + i] = normal_i * gains[of + i] + shifts[of + i]
        else:
            length = np.sqrt(squares)
            if length < _SHORTEST:  # not max: a length that is no number stays none
                length = _SHORTEST
            inverse = ONE / length
            scaled = inverse * gains[row // share]
            scale = splat(scaled)
            for i in range(0, whole, LANES):
                store(out, at + i, mul(load(given, at + i), scale))
            for i in range(whole, size):
                out[at + i] = given[at + i] * scaled
        means[row], inverses[row] = mean, inverse


@entry
def length_backward(
    given: Memory, gains: Memory, inverses: Memory, slopes: Memory, given_slopes: Memory,
    bias_slopes: Memory, gain_slopes: Memory, some: Memory, size: int, share: int,
) -> None:  # fmt: skip
    """Of rows scaled to a length; slopes of the bias begin as zeros, `some` is a row of scratch."""
    whole = size - size % LANES
    for member in range(len(inverses) // share):
        gain, of, by_gain = gains[member], member * size, 0.0
        stop = (member + 1) * share
        for start in range(member * share, stop, _TOGETHER):
            clear(some, 0, size)
            for row in range(start, min(start + _TOGETHER, stop)):
                at, inverse = row * size, inverses[row]
                sums = splat(ZERO)
                for i in range(0, whole, LANES):
                    sums = fma(load(slopes, at + i), load(given, at + i), sums)
                dot = total(sums)
                for i in range(whole, size):
                    dot += slopes[at + i] * given[at + i]
                dot *= inverse  # slope · normal
                by_gain += dot
                scale, back = inverse * gain, dot * inverse
                scales, backs = splat(scale), splat(back)
                for i in range(0, whole, LANES):
                    pulled = sub(load(slopes, at + i), mul(load(given, at + i), backs))
                    moved = mul(pulled, scales)
                    store(given_slopes, at + i, moved)
                    store(some, i, add(load(some, i), moved))
                for i in range(whole, size):
                    moved_i = (slopes[at + i] - given[at + i] * back) * scale
                    given_slopes[at + i] = moved_i
                    some[i] += moved_i
            for i in range(size):
                bias_slopes[of + i] += some[i]
        gain_slopes[member] = by_gain


@entry
def layer_backward(
    given: Memory, gains: Memory, means: Memory, inverses: Memory, slopes: Memory,
    given_slopes: Memory, bias_slopes: Memory, gain_slopes: Memory, shift_slopes: Memory,
    some: Memory, size: int, share: int,
) -> None:  # fmt: skip
    """Of layer norms; slopes of parameters begin as zeros, `some` has three rows of scratch."""
    count, whole = np.float32(size), size - size % LANES
    room = len(some) // 3
    for member in range(len(inverses) // share):
        of, stop = member * size, (member + 1) * share
        for start in range(member * share, stop, _TOGETHER):
            clear(some, 0, len(some))
            for row in range(start, min(start + _TOGETHER, stop)):
                at, mean, inverse = row * size, means[row], inverses[row]
                middle, scale = splat(mean), splat(inverse)
                sums, dots = splat(ZERO), splat(ZERO)
                for i in range(0, whole, LANES):
                    slope = load(slopes, at + i)
                    normal = mul(sub(load(given, at + i), middle), scale)
                    pull, by_gain = mul(slope, load(gains, of + i)), mul(slope, normal)
                    sums, dots = add(sums, pull), fma(pull, normal, dots)
                    store(some, room + i, add(load(some, room + i), by_gain))
                    store(some, 2 * room + i, add(load(some, 2 * room + i), slope))
                across, along = total(sums), total(dots)
                for i in range(whole, size):
                    normal_i = (given[at + i] - mean) * inverse
                    pull_i = slopes[at + i] * gains[of + i]
                    across += pull_i
                    along += pull_i * normal_i
                    some[room + i] += slopes[at + i] * normal_i
                    some[2 * room + i] += slopes[at + i]
                across, along = across / count, along / count
                acrosses, alongs = splat(across), splat(along)
                for i in range(0, whole, LANES):
                    normal = mul(sub(load(given, at + i), middle), scale)
                    pull = mul(load(slopes, at + i), load(gains, of + i))
                    moved = mul(sub(sub(pull, acrosses), mul(normal, alongs)), scale)
                    store(given_slopes, at + i, moved)
                    store(some, i, add(load(some, i), moved))
                for i in range(whole, size):
                    normal_i = (given[at + i] - mean) * inverse
                    pull_i = slopes[at + i] * gains[of + i]
                    moved_i = (pull_i - across - normal_i * along) * inverse
                    given_slopes[at + i] = moved_i
                    some[i] += moved_i
            for i in range(size):
                bias_slopes[of + i] += some[i]
                gain_slopes[of + i] += some[room + i]
                shift_slopes[of + i] += some[2 * room + i]
