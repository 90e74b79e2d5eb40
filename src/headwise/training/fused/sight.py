"""What a head sees of a sequence: a range of its tokens, and of these the largest scores.

A score of −∞ has no weight and no gradient, so what is hidden here stays hidden.
"""

from typing import Any

import numpy as np

from headwise.core.compiled.host import LANES, inner, pasted
from headwise.core.compiled.simd import load, maximum, minimum, replaced_below, splat, store
from headwise.training.fused.layout import Scratch, Sizes
from headwise.training.fused.products import Block, Memory, part

MINUS_INFINITY = np.float32(-np.inf)


@inner
def extent_of(sizes: Sizes, piece: int) -> tuple[int, int]:
    """First token of a piece, and how many it has."""
    start = piece * sizes.piece
    return start, min(sizes.piece, sizes.length - start)


@inner
def piece_of(sizes: Sizes, scratch: Scratch, pack: int, piece: int) -> tuple[Block, Block, Block]:
    """Where tokens, hidden layer and attention of a piece lie."""
    block = pack * sizes.pieces + piece
    tokens = part(scratch.tokens, pack * sizes.token_dim, piece * sizes.piece * LANES)
    hidden = part(scratch.hidden, block * sizes.width, 0)
    return tokens, hidden, part(scratch.attention, block * sizes.attention_rows, 0)


@pasted
def hide(
    memory: Memory, sizes: Sizes, attention: Block, start: int, columns: int, reach: np.ndarray
) -> None:
    """Of a piece, the tokens outside of reach[2i] ≤ t < reach[2i + 1] for head i."""
    for i in range(sizes.heads):
        row = attention.at + i * attention.row
        first = min(max(reach[2 * i] - start, 0), columns)
        last = max(min(reach[2 * i + 1] - start, columns), first)
        for t in range(first):
            store(memory, row + t * LANES, splat(MINUS_INFINITY))
        for t in range(last, columns):
            store(memory, row + t * LANES, splat(MINUS_INFINITY))


@pasted
def keep_strongest(memory: Memory, sizes: Sizes, scratch: Scratch, pack: int) -> None:
    """Of a pack's scores, the class token's among them, the `kept` largest of each head."""
    hidden = splat(MINUS_INFINITY)
    for i in range(sizes.heads):
        own = scratch.class_score.at + (pack * sizes.heads + i) * LANES
        least = _least_kept(memory, sizes, scratch, pack, i, load(memory, own))
        store(memory, own, replaced_below(load(memory, own), least, hidden))
        for piece in range(sizes.pieces):
            _, columns = extent_of(sizes, piece)
            _, _, attention = piece_of(sizes, scratch, pack, piece)
            row = attention.at + i * attention.row
            for at in range(row, row + columns * LANES, LANES):
                store(memory, at, replaced_below(load(memory, at), least, hidden))


@inner
def _least_kept(
    memory: Memory, sizes: Sizes, scratch: Scratch, pack: int, head: int, own: Any
) -> Any:
    """The `kept`-th largest of a head's scores, lane by lane; `own` is the class token's.

    Four at a time, in falling order, in registers: a score goes down the list, swapped wherever it
    is the larger one. What falls out is left, in the rows of the gradients, to the next four.
    """
    hidden, below = splat(MINUS_INFINITY), 0
    first, second, third, fourth = own, hidden, hidden, hidden
    for fours in range((sizes.kept + 3) // 4):
        if fours:
            first, second, third, fourth = hidden, hidden, hidden, hidden
        for piece in range(sizes.pieces):
            _, columns = extent_of(sizes, piece)
            _, _, attention = piece_of(sizes, scratch, pack, piece)
            row, rest = attention.at + head * attention.row, sizes.heads * attention.row
            for at in range(row, row + columns * LANES, LANES):
                score = load(memory, at + below * rest)
                first, score = maximum(first, score), minimum(first, score)
                second, score = maximum(second, score), minimum(second, score)
                third, score = maximum(third, score), minimum(third, score)
                fourth, score = maximum(fourth, score), minimum(fourth, score)
                store(memory, at + rest, score)
        below = 1
    place = (sizes.kept - 1) % 4
    if place == 0:
        return first
    if place == 1:
        return second
    return third if place == 2 else fourth
