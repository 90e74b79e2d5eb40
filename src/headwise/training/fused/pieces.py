"""The products of a piece, each compiled once and on its own: inlined they would share registers.

A piece has as many columns as tokens; a column is a vector with a sequence a lane.
"""

from numba import types

from headwise.core.compiled.host import out_of_line, shared
from headwise.core.compiled.simd import MEMORY
from headwise.training.fused.gradient_tiles import gradient_tiles
from headwise.training.fused.products import BLOCK, Block, Memory
from headwise.training.fused.tiles import (
    embed_tiles,
    pool_tiles,
    pull_tiles,
    score_tiles,
    slope_tiles,
)


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3)
def embed(
    memory: Memory,
    units: int,
    columns: int,
    token_dim: int,
    weights: Block,
    tokens: Block,
    hidden: Block,
) -> None:
    """r = max(0, Wᵀ·x + b); b is the last row of the weights."""
    out_of_line()
    embed_tiles(
        memory, units, columns, token_dim, weights.at, weights.row, tokens.at, tokens.row,
        hidden.at, hidden.row,
    )  # fmt: skip


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3)
def score(
    memory: Memory, heads: int, columns: int, units: int, scores: Block, hidden: Block, out: Block
) -> None:
    """u·r"""
    out_of_line()
    score_tiles(
        memory, heads, columns, units, scores.at, scores.row, hidden.at, hidden.row, out.at, out.row
    )


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3, types.intp, types.intp)
def weighted_sums(
    memory: Memory,
    heads: int,
    units: int,
    columns: int,
    attention: Block,
    hidden: Block,
    sums: Block,
    mode: int,
    scale: int,
) -> None:
    """P = a·rᵀ in each lane; mode ADD adds the old P, scaled by a vector a head."""
    out_of_line()
    pool_tiles(
        memory, heads, units, columns, attention.at, attention.row, hidden.at, hidden.row,
        sums.at, sums.row, mode, scale,
    )  # fmt: skip


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3)
def pull_back(
    memory: Memory, units: int, packs: int, v_dim: int, values: Block, heads: Block, out: Block
) -> None:
    """∂P = Vᵀ·∂o of a head, pack after pack: a row of `out` is a pack's."""
    out_of_line()
    pull_tiles(
        memory, units, packs, v_dim, values.at, values.row, heads.at, heads.row, out.at, out.row
    )


@shared(MEMORY, *[types.intp] * 3, *[BLOCK] * 3)
def slopes(
    memory: Memory, heads: int, columns: int, units: int, pull: Block, hidden: Block, out: Block
) -> None:
    """∂a = ∂P·r in each lane."""
    out_of_line()
    slope_tiles(
        memory, heads, columns, units, pull.at, pull.row, hidden.at, hidden.row, out.at, out.row
    )


@shared(MEMORY, *[types.intp] * 5, *[BLOCK] * 7)
def gradients(
    memory: Memory,
    units: int,
    columns: int,
    heads: int,
    score_maps: int,
    token_dim: int,
    pull: Block,
    scores: Block,
    attention: Block,
    hidden: Block,
    tokens: Block,
    embed_sums: Block,
    scores_sums: Block,
) -> None:
    """What a piece adds to the gradients of embedding and scores."""
    out_of_line()
    gradient_tiles(
        memory, units, columns, heads, score_maps, token_dim, pull.at, pull.row, scores.at,
        scores.row, attention.at, attention.row, hidden.at, hidden.row, tokens.at, tokens.row,
        embed_sums.at, embed_sums.row, scores_sums.at, scores_sums.row,
    )  # fmt: skip
