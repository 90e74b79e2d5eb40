"""What a head sees of a sequence: a range of its tokens, and of these the largest scores.

A score of −∞ has no weight and no gradient, so what is hidden here stays hidden.
"""

import numpy as np

from headwise.training.fused.host import LANES, inner, pasted
from headwise.training.fused.layout import Scratch, Sizes
from headwise.training.fused.products import Block, Memory, part
from headwise.training.fused.simd import load, maximum, minimum, replaced_below, splat, store

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
    return tokens, hidden, part(scratch.attention, block * 2 * sizes.heads, 0)


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
def keep_strongest(
    memory: Memory, sizes: Sizes, scratch: Scratch, pack: int, best: np.ndarray
) -> None:
    """Of a pack's scores, the class token's among them, the `kept` largest of each head.

    `best` is room for that many vectors, in falling order lane by lane: a score goes down the list,
    swapped wherever it is the larger one.
    """
    last, hidden = (sizes.kept - 1) * LANES, splat(MINUS_INFINITY)
    for i in range(sizes.heads):
        own = scratch.class_score.at + (pack * sizes.heads + i) * LANES
        best[:] = MINUS_INFINITY
        store(best, 0, load(memory, own))
        for piece in range(sizes.pieces):
            _, columns = extent_of(sizes, piece)
            _, _, attention = piece_of(sizes, scratch, pack, piece)
            row = attention.at + i * attention.row
            for at in range(row, row + columns * LANES, LANES):
                score = load(memory, at)
                for place in range(0, last + LANES, LANES):
                    held = load(best, place)
                    store(best, place, maximum(held, score))
                    score = minimum(held, score)
        least = load(best, last)
        store(memory, own, replaced_below(load(memory, own), least, hidden))
        for piece in range(sizes.pieces):
            _, columns = extent_of(sizes, piece)
            _, _, attention = piece_of(sizes, scratch, pack, piece)
            row = attention.at + i * attention.row
            for at in range(row, row + columns * LANES, LANES):
                store(memory, at, replaced_below(load(memory, at), least, hidden))
