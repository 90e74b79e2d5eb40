"""Matrix products on blocks of one array, in tiles that stay in registers.

A block is a matrix inside the array: where it starts and the distance between rows and columns.
Rows of stored blocks are padded to whole vectors. Vectors reach into that padding, so it must be
finite where it is read and may be overwritten where it is written; zeros stay zeros.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numba import types

from headwise.core.compiled.host import LANES, inner, out_of_line, shared
from headwise.core.compiled.simd import MEMORY
from headwise.training.fused.dot_tile import dot_tile
from headwise.training.fused.tiles import outer_tiles

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


BLOCK = types.NamedUniTuple(types.intp, 3, Block)


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3, types.intp)
def product(
    memory: Memory,
    rows: int,
    columns: int,
    depth: int,
    left: Block,
    right: Block,
    out: Block,
    mode: int,
) -> None:
    """out = left·right, (rows × depth)·(depth × columns), lanes along the columns.

    `left` may be a flipped block; `mode` is that of the tiles.
    """
    out_of_line()
    outer_tiles(
        memory, rows, (columns + LANES - 1) // LANES, depth, left.at, left.row, left.column,
        right.at, right.row, out.at, out.row, mode,
    )  # fmt: skip


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3, types.intp)
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
