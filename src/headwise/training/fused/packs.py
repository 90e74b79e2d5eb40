"""Packs: LANES sequences side by side, one a lane, so that no sum over tokens crosses lanes."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES, pasted
from headwise.core.compiled.simd import MEMORY, operation
from headwise.training.fused.layout import Sizes
from headwise.training.fused.loops import INDEX, offset
from headwise.training.fused.products import Block, Memory


@operation(types.void, MEMORY, types.intp, MEMORY, types.intp[::1], types.intp)
def transpose(builder: Any, memory: Any, at: Any, source: Any, rows: Any, shift: Any) -> None:
    """memory[at + i·LANES + s] = source[rows[s] + shift + i] for i, s < LANES.

    A round swaps the off-diagonal blocks of half the size before, as in a recursive transposition.
    """
    vectors = []
    for s in range(LANES):
        start = builder.load(builder.gep(rows, [INDEX(s)]))
        vectors.append(emit.load_at(builder, offset(builder, source, start, shift)))
    distance = LANES // 2
    while distance:
        lanes = range(LANES)
        upper = [i if not i & distance else LANES + i - distance for i in lanes]
        lower = [i + distance if not i & distance else LANES + i for i in lanes]
        swapped = list(vectors)
        for i in (i for i in lanes if not i & distance):
            a, b = vectors[i], vectors[i + distance]
            swapped[i] = builder.shuffle_vector(a, b, ir.Constant(emit.INTS, upper))
            swapped[i + distance] = builder.shuffle_vector(a, b, ir.Constant(emit.INTS, lower))
        vectors, distance = swapped, distance // 2
    for i, vector in enumerate(vectors):
        emit.store_at(builder, offset(builder, memory, at, INDEX(i * LANES)), vector)


@pasted
def choose(sizes: Sizes, order: np.ndarray, first: int, count: int, rows: np.ndarray) -> None:
    """Where the inputs of a pack begin. Lanes beyond the batch repeat its last sequence."""
    for s in range(LANES):
        rows[s] = order[min(first + s, count - 1)] * sizes.token_dim * sizes.length


@pasted
def gather(
    memory: Memory, sizes: Sizes, inputs: Memory, rows: np.ndarray, start: int, count: int,
    tokens: Block,
) -> None:  # fmt: skip
    """Tokens from `start` on of a pack, coordinate by coordinate, in whole squares of LANES.

    A square belongs to the piece that holds its first token, and may reach into the next piece.
    """
    for t in range(-start % LANES, count, LANES):
        for k in range(sizes.token_dim):
            target, shift = tokens.at + k * tokens.row + t * LANES, k * sizes.length + start + t
            if start + t + LANES <= sizes.length:
                transpose(memory, target, inputs, rows, shift)
            else:
                for s in range(LANES):
                    for i in range(sizes.length - start - t):
                        memory[target + i * LANES + s] = inputs[rows[s] + shift + i]
