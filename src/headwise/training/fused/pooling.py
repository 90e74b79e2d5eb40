"""Embed, score, soften, pool: nearly all the work of a step, forward and backward.

The batch goes through in packs of LANES sequences, one a lane, and a pack's tokens in pieces, small
enough for the hidden layer r (width × tokens vectors) to stay near while products use it.
"""

import numpy as np

from headwise.core.compiled.host import LANES, pasted
from headwise.core.compiled.simd import splat, store, sum_lanes
from headwise.training.fused.features import class_sum, weigh, weigh_back
from headwise.training.fused.layout import Scratch, Sizes, Weights
from headwise.training.fused.packs import choose, gather
from headwise.training.fused.pieces import embed, gradients, score, slopes, weighted_sums
from headwise.training.fused.products import Block, Memory, part
from headwise.training.fused.sight import (
    MINUS_INFINITY,
    extent_of,
    hide,
    keep_strongest,
    piece_of,
)
from headwise.training.fused.softmax import ZERO, finish, of_head, prepare, soften, soften_back
from headwise.training.fused.tiles import ADD, PLAIN


@pasted
def share_scores(memory: Memory, sizes: Sizes, scratch: Scratch, pack: int) -> None:
    """The class token's score of each head, in all lanes of a pack."""
    for i in range(sizes.heads):
        if sizes.by_features:
            own = class_sum(memory, sizes, scratch, i)
        else:
            own = memory[scratch.scores.at + i * scratch.scores.row + sizes.width + 1]
        score = splat(own if sizes.class_token_is_key else MINUS_INFINITY)
        store(memory, of_head(sizes, scratch.class_score, pack, i), score)


@pasted
def pool(
    memory: Memory,
    sizes: Sizes,
    weights: Weights,
    scratch: Scratch,
    inputs: Memory,
    order: np.ndarray,
    count: int,
    rows: np.ndarray,
    reach: np.ndarray,
) -> None:
    """P_i and the class token's weight for the sequences inputs[order[:count]]."""
    heads, width, token_dim = sizes.heads, sizes.width, sizes.token_dim
    sums = Block(scratch.sums.at, width * LANES, LANES)
    for pack in range((count + LANES - 1) // LANES):
        choose(sizes, order, pack * LANES, count, rows)
        share_scores(memory, sizes, scratch, pack)
        scored = sizes.pieces if sizes.kept else 0  # pieces whose scores must be known first
        for turn in range(scored + sizes.pieces):
            piece = turn % sizes.pieces
            start, columns = extent_of(sizes, piece)
            tokens, hidden, attention = piece_of(sizes, scratch, pack, piece)
            if turn < sizes.pieces:
                gather(memory, sizes, inputs, rows, start, columns, tokens)
                embed(memory, width, columns, token_dim, weights.embed0, tokens, hidden)
                scores = part(attention, heads * sizes.by_features, 0)
                score(memory, sizes.score_maps, columns, width, scratch.scores, hidden, scores)
                hide(memory, sizes, attention, start, columns, reach)
            if scored and turn == scored:
                keep_strongest(memory, sizes, scratch, pack)
            if turn >= scored:
                if sizes.by_features:
                    weigh(memory, sizes, scratch, attention, columns, pack, piece)
                else:
                    soften(memory, sizes, scratch, attention, columns, pack, piece)
                mode, scale = ADD if piece else PLAIN, scratch.factor.at
                weighted_sums(memory, heads, width, columns, attention, hidden, sums, mode, scale)
        finish(memory, sizes, scratch, pack)


@pasted
def pool_back(memory: Memory, sizes: Sizes, scratch: Scratch, first: int, count: int) -> None:
    """Sums for the gradients of embed0 and of the folded scores, from `pull`."""
    heads, width, token_dim = sizes.heads, sizes.width, sizes.token_dim
    row = sizes.pooled_rows * LANES
    for pack in range((count + LANES - 1) // LANES):
        prepare(memory, sizes, scratch, first, pack)
        pull = Block(scratch.pull.at + pack * scratch.pull.row, row, LANES)
        for piece in range(sizes.pieces):
            _, columns = extent_of(sizes, piece)
            tokens, hidden, attention = piece_of(sizes, scratch, pack, piece)
            below = part(attention, sizes.attention_rows - heads, 0)
            slopes(memory, heads, columns, width, pull, hidden, below)
            if sizes.by_features:
                weigh_back(memory, sizes, scratch, attention, columns, pack)
            else:
                soften_back(memory, sizes, scratch, attention, columns, pack, piece)
            gradients(
                memory, width, columns, heads, sizes.score_maps, token_dim, pull, scratch.scores,
                attention, hidden, tokens, scratch.embed_sums, scratch.scores_sums,
            )  # fmt: skip


@pasted
def collect(memory: Memory, sizes: Sizes, grads: Weights, scratch: Scratch) -> None:
    """Once a step: add up the lanes of the gradients' sums."""
    for rows, sums, out in (
        (sizes.token_dim + 1, scratch.embed_sums, grads.embed0),
        (sizes.score_maps, scratch.scores_sums, scratch.scores_grad),
    ):
        for at in range(0, rows * out.row, LANES):
            store(memory, out.at + at, sum_lanes(memory, sums.at + at * LANES))


@pasted
def clear(memory: Memory, sizes: Sizes, scratch: Scratch) -> None:
    """Zero what is added up over packs and groups."""
    for area, rows in (
        (scratch.embed_sums, sizes.token_dim + 1),
        (scratch.scores_sums, sizes.score_maps),
        (scratch.query_sums, sizes.heads * sizes.qk_dim),
        (scratch.values_grad, sizes.key_maps * sizes.v_dim),
    ):
        memory[area.at : area.at + rows * area.row] = ZERO
