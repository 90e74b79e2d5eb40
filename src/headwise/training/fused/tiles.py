"""The inner loops of matrix products, as LLVM code whose sums stay in registers.

out[r, c] = Σ_k left[r, k]·right[k, c], lanes along c; a step over k takes a few factors from the
left and a few vectors from the right. A factor is a number, or a vector too: then each lane
multiplies matrices of its own. All share one loop, but every product has a copy in which the
strides that it knows are constants, which saves registers and time.
"""

from collections.abc import Callable, Mapping
from itertools import product as pairs
from typing import Any, NamedTuple

from numba import types

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import MEMORY, operation
from headwise.training.fused.loops import INDEX, cover, loop, offset

PLAIN, ADD = range(2)  # a finished tile is written as it is, or added to what is there

# Vectors of a tile by its rows. Two FMA units with a latency of 4 need 8 sums in flight; AVX2 has
# 16 registers, of which 12 sums leave enough for the factors.
LONG = {6: (2, 1), 4: (3, 2, 1), 3: (4, 2, 1), 2: (4, 2, 1), 1: (8, 4, 2, 1)}
SHORT = {2: (4, 2, 1), 1: (8, 4, 2, 1)}  # where sums are over few numbers
HEADS = {4: (3, 2, 1), 3: (4, 2, 1), 2: (4, 2, 1), 1: (8, 4, 2, 1)}

Values = list[Any]


class _Sides(NamedTuple):
    """Strides and starts of a product of rows × vectors; constants where they are known."""

    rows: Any
    vectors: Any
    depth: Any
    left: Any
    left_row: Any
    left_inner: Any
    right: Any
    right_vector: Any
    right_inner: Any
    out: Any
    out_row: Any
    out_vector: Any = INDEX(LANES)


def _multiply(
    builder: Any,
    base: Any,
    of: _Sides,
    shapes: Mapping[int, tuple[int, ...]],
    factor: Callable[[Any, Any], Any],
    start: Callable[[Any], Any],
    finish: Callable[[Any, Any, Any], Any],
) -> None:
    """`factor` loads from the left, `start` gives a row's first value, `finish` what is written.

    `finish` gets row, sum and place.
    """

    def tile(height: int, width: int, row: Any, vector: Any) -> None:
        first = builder.add(of.left, builder.mul(row, of.left_row))
        column = builder.add(of.right, builder.mul(vector, of.right_vector))
        row_starts = [builder.mul(of.left_row, INDEX(r)) for r in range(height)]
        columns = [builder.mul(of.right_vector, INDEX(v)) for v in range(width)]
        rows = [builder.add(row, INDEX(r)) for r in range(height)]
        starts = [start(own) for own in rows for _ in range(width)]
        with loop(builder, of.depth, starts) as (k, sums, new):
            lower, further = builder.mul(k, of.right_inner), builder.mul(k, of.left_inner)
            lanes = [
                emit.load_at(builder, offset(builder, base, column, lower, shift))
                for shift in columns
            ]
            for r, shift in enumerate(row_starts):
                own = factor(builder, offset(builder, base, first, further, shift))
                for v, right in enumerate(lanes):
                    new.append(emit.multiply_add(builder, own, right, sums[r * width + v]))
        corner = builder.add(of.out, builder.mul(vector, of.out_vector))
        for (r, v), value in zip(pairs(range(height), range(width)), new, strict=True):
            own_row = builder.mul(rows[r], of.out_row)
            place = offset(builder, base, corner, own_row, builder.mul(of.out_vector, INDEX(v)))
            emit.store_at(builder, place, finish(rows[r], value, place))

    cover(builder, of.rows, of.vectors, shapes, tile)


def _zero(row: Any) -> Any:
    return emit.constant(0.0)


def _sum(row: Any, value: Any, place: Any) -> Any:
    return value


@operation(types.void, MEMORY, *[types.intp] * 11)
def outer_tiles(builder: Any, base: Any, *values: Any) -> None:
    """`_Sides` but the vectors' stride, and PLAIN or ADD."""
    rows, vectors, depth, left, left_row, left_inner, right, right_inner = values[:8]
    out, out_row, mode = values[8:]
    of = _Sides(
        rows, vectors, depth, left, left_row, left_inner, right, INDEX(LANES), right_inner,
        out, out_row,
    )  # fmt: skip
    adding = builder.icmp_signed("==", mode, INDEX(ADD))

    def finish(row: Any, value: Any, place: Any) -> Any:
        old = builder.select(adding, emit.load_at(builder, place), emit.constant(0.0))
        return builder.fadd(old, value)

    _multiply(builder, base, of, LONG, emit.spread_at, _zero, finish)


@operation(types.void, MEMORY, *[types.intp] * 9)
def pull_tiles(builder: Any, base: Any, *values: Any) -> None:
    """Vᵀ·∂o, a vector after another: units, packs, v_dim, V and its rows, ∂o and its rows, out and
    the distance of its packs.
    """
    units, packs, depth, value, value_row, heads, heads_row, out, out_pack = values
    of = _Sides(
        units, packs, depth, value, INDEX(1), value_row, heads, INDEX(LANES), heads_row,
        out, INDEX(LANES), out_pack,
    )  # fmt: skip
    _multiply(builder, base, of, SHORT, emit.spread_at, _zero, _sum)


@operation(types.void, MEMORY, *[types.intp] * 9)
def embed_tiles(builder: Any, base: Any, *values: Any) -> None:
    """max(0, Wᵀ·x + b): units, columns, token_dim, W with b below and its rows, x, r and theirs."""
    units, columns, depth, embed, embed_row, tokens, tokens_row, hidden, hidden_row = values
    of = _Sides(
        units, columns, depth, embed, INDEX(1), embed_row, tokens, INDEX(LANES), tokens_row,
        hidden, hidden_row,
    )  # fmt: skip
    bias = builder.add(embed, builder.mul(depth, embed_row))

    def start(row: Any) -> Any:
        return emit.spread_at(builder, offset(builder, base, bias, row))

    def finish(row: Any, value: Any, place: Any) -> Any:
        return emit.at_least(builder, emit.constant(0.0), value)

    _multiply(builder, base, of, SHORT, emit.spread_at, start, finish)


@operation(types.void, MEMORY, *[types.intp] * 9)
def score_tiles(builder: Any, base: Any, *values: Any) -> None:
    """u·r: heads, columns, units, u and its rows, r and its rows, out and its rows."""
    heads, columns, units, scores, scores_row, hidden, hidden_row, out, out_row = values
    of = _Sides(
        heads, columns, units, scores, scores_row, INDEX(1), hidden, INDEX(LANES), hidden_row,
        out, out_row,
    )  # fmt: skip
    _multiply(builder, base, of, HEADS, emit.spread_at, _zero, _sum)


@operation(types.void, MEMORY, *[types.intp] * 9)
def slope_tiles(builder: Any, base: Any, *values: Any) -> None:
    """∂P·r, lane by lane: heads, columns, units, then as `score_tiles`."""
    heads, columns, units, pull, pull_row, hidden, hidden_row, out, out_row = values
    of = _Sides(
        heads, columns, units, pull, pull_row, INDEX(LANES), hidden, INDEX(LANES), hidden_row,
        out, out_row,
    )  # fmt: skip
    _multiply(builder, base, of, HEADS, emit.load_at, _zero, _sum)


@operation(types.void, MEMORY, *[types.intp] * 11)
def pool_tiles(builder: Any, base: Any, *values: Any) -> None:
    """old·scale + a·rᵀ, lane by lane, or without the old: heads, units, columns, a and its rows, r
    and its rows, out and its rows, PLAIN or ADD, a vector of scale a head.
    """
    heads, units, columns, attention, attention_row, hidden, hidden_row, out, out_row = values[:9]
    mode, scale = values[9:]
    of = _Sides(
        heads, units, columns, attention, attention_row, INDEX(LANES), hidden, hidden_row,
        INDEX(LANES), out, out_row,
    )  # fmt: skip
    adding = builder.icmp_signed("==", mode, INDEX(ADD))

    def finish(row: Any, value: Any, place: Any) -> Any:
        old = builder.select(adding, emit.load_at(builder, place), emit.constant(0.0))
        share = emit.load_at(builder, offset(builder, base, scale, builder.mul(row, INDEX(LANES))))
        return emit.multiply_add(builder, old, share, value)

    _multiply(builder, base, of, HEADS, emit.load_at, _zero, finish)
