"""Matrix products on blocks of one array, in tiles that stay in registers.

A block is a matrix inside the array: where it starts and the distance between rows and columns.
Rows of stored blocks are padded to whole vectors. Vectors reach into that padding, so it must be
finite where it is read and may be overwritten where it is written; zeros stay zeros.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numba import types

from headwise.train.fused.host import LANES, inner, out_of_line, shared
from headwise.train.fused.tiles import HALF, MOST_ROWS, SPAN, dot_tile, outer_tile

Memory = Float32[np.ndarray, " size"]


class Block(NamedTuple):
    """Element (i, j) lies at `at + i·row + j·column`."""

    at: int
    row: int
    column: int


@inner
def flip(block: Block) -> Block:
    """The transposed matrix."""
    return Block(block.at, block.column, block.row)


@inner
def part(block: Block, i: int, j: int) -> Block:
    """The matrix that starts at element (i, j)."""
    return Block(block.at + i * block.row + j * block.column, block.row, block.column)


_MEMORY, _BLOCK = types.float32[::1], types.NamedUniTuple(types.intp, 3, Block)


@shared(_MEMORY, *[types.intp] * 3, *[_BLOCK] * 3, types.intp, _BLOCK)
def product(
    memory: Memory,
    rows: int,
    columns: int,
    depth: int,
    left: Block,
    right: Block,
    out: Block,
    mode: int,
    gate: Block,
) -> None:
    """out = left·right, (rows × depth)·(depth × columns), lanes along the columns.

    `left` may be a flipped block; `mode` and `gate` (laid out like `out`) are those of the tiles.
    """
    out_of_line()
    blocks = (rows + MOST_ROWS - 1) // MOST_ROWS
    for column in range(0, columns, SPAN):
        vectors = min((columns - column + LANES - 1) // LANES, SPAN // LANES)
        row = 0
        for block in range(blocks):  # even heights: 8 rows are 4 + 4, not 6 + 2
            height = (rows - row + blocks - block - 1) // (blocks - block)
            shift = row * out.row + column
            outer_tile(
                memory,
                height,
                vectors,
                depth,
                left.at + row * left.row,
                left.row,
                left.column,
                right.at + column,
                right.row,
                out.at + shift,
                out.row,
                mode,
                gate.at + shift,
            )
            row += height


@shared(_MEMORY, *[types.intp] * 3, *[_BLOCK] * 3, types.intp)
def dots(
    memory: Memory,
    rows: int,
    columns: int,
    depth: int,
    left: Block,
    right: Block,
    out: Block,
    mode: int,
) -> None:
    """out = left·rightᵀ, (rows × depth)·(columns × depth)ᵀ, lanes along the depth.

    Rows of `left` and `right` are contiguous; their padding up to whole vectors counts, so it is
    zero in one of them. Exactly rows × columns numbers are written.
    """
    out_of_line()
    vectors = (depth + LANES - 1) // LANES
    row = 0
    while row < rows:
        height = 2 if row + 2 <= rows else 1
        width = HALF if height == 2 else LANES
        for column in range(0, columns, width):
            dot_tile(
                memory,
                height,
                columns - column,
                vectors,
                left.at + row * left.row,
                left.row,
                right.at + column * right.row,
                right.row,
                out.at + row * out.row + column * out.column,
                out.row,
                mode,
            )
        row += height
