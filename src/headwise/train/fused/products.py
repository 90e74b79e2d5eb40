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
from headwise.train.fused.tiles import MOST_ROWS, dot_tile, outer_tile

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


@inner
def heights_of(rows: int) -> tuple[int, int]:
    """Height of the next tiles and how many: 8 rows are 4 + 4, not 6 + 2."""
    if rows <= MOST_ROWS:
        return rows, 1
    if rows < 2 * MOST_ROWS:
        return (rows + 1) // 2, 2 - rows % 2
    tiles = rows // MOST_ROWS
    return MOST_ROWS, tiles if rows == tiles * MOST_ROWS else tiles - 1


@inner
def widths_of(height: int, vectors: int) -> tuple[int, int]:
    """Width of the next tiles of this height, see WIDTHS, and how many: no division by variables.

    Four rows take three vectors at a time, but 4 as 2 + 2.
    """
    if height == 1 and vectors >= 8:
        return 8, vectors // 8
    if height <= 3 and vectors >= 4:
        return 4, vectors // 4
    if height == 4 and vectors >= 3 and vectors != 4:
        tiles = vectors // 3
        return 3, tiles - 1 if vectors - 3 * tiles == 1 else tiles
    return (2, vectors // 2) if vectors >= 2 else (1, 1)


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
    row = 0
    while row < rows:
        height, down = heights_of(rows - row)
        column = 0
        while column < columns:
            width, across = widths_of(height, (columns - column + LANES - 1) // LANES)
            shift = row * out.row + column
            outer_tile(
                memory,
                height,
                width,
                down,
                across,
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
            column += across * width * LANES
        row += down * height


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
        tiles = columns // (LANES // 2) if height == 2 else columns // LANES
        edge = tiles * (LANES // 2) if height == 2 else tiles * LANES
        if tiles:
            dot_tile(
                memory,
                height,
                tiles,
                vectors,
                left.at + row * left.row,
                left.row,
                right.at,
                right.row,
                out.at + row * out.row,
                out.row,
                mode,
            )
        if edge < columns:
            for last in range(row, row + height):
                dot_tile(
                    memory,
                    0,
                    columns - edge,
                    vectors,
                    left.at + last * left.row,
                    left.row,
                    right.at + edge * right.row,
                    right.row,
                    out.at + last * out.row + edge,
                    out.row,
                    mode,
                )
        row += height
