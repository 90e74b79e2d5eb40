"""All that needs the hidden layer's gradient, in one loop, so that it never leaves registers.

With G = ∂P (a vector an element, as every matrix below but u), a and s the attention and the
gradient of the scores, r = max(0, Wᵀ·x + b) and u the folded scores, for some units j and columns c

    d[j, c] = (Σ_i G[i, j]·a[i, c] + Σ_i u[i, j]·s[i, c])·[r[j, c] > 0]
    ∂W[k, j] += Σ_c x[k, c]·d[j, c]      ∂b[j] += Σ_c d[j, c]      ∂u[i, j] += Σ_c s[i, c]·r[j, c]

The last three are kept as vectors; their lanes are added up once a step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba import types

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import MEMORY, operation
from headwise.training.fused.loops import INDEX, cover, loop, offset

SHAPES = {4: (3, 2, 1), 2: (4, 2, 1), 1: (4, 2, 1)}  # columns of a tile by its units


class _Places(NamedTuple):
    """Where the matrices lie, and the distance of their rows, in floats."""

    units: Any
    columns: Any
    heads: Any
    score_maps: Any
    token_dim: Any
    pull: Any  # G
    pull_row: Any
    scores: Any  # u
    scores_row: Any
    attention: Any  # a, and s below
    attention_row: Any
    hidden: Any  # r
    hidden_row: Any
    tokens: Any  # x
    tokens_row: Any
    embed: Any  # ∂W, and ∂b below
    embed_row: Any
    scores_grad: Any  # ∂u
    scores_grad_row: Any


@operation(types.void, MEMORY, *[types.intp] * len(_Places._fields))
def gradient_tiles(builder: Any, base: Any, *values: Any) -> None:
    """The gradients of pooling and scores, a tile of tokens by hidden units at a time."""
    of = _Places(*values)

    def vector(*terms: Any) -> Any:
        return emit.load_at(builder, offset(builder, base, *terms))

    def number(*terms: Any) -> Any:
        return emit.spread_at(builder, offset(builder, base, *terms))

    def tile(unit_count: int, column_count: int, unit: Any, column: Any) -> None:
        own_columns = [INDEX(c * LANES) for c in range(column_count)]
        own_units = range(unit_count)
        shift, wide = builder.mul(column, INDEX(LANES)), builder.mul(unit, INDEX(LANES))

        def along(sums: list[Any], lanes: list[Any], factors: list[Any]) -> list[Any]:
            return [
                emit.multiply_add(builder, factors[j], lanes[c], sums[j * column_count + c])
                for j in own_units
                for c in range(column_count)
            ]

        def row_of(start: Any, row: Any, index: Any) -> Any:
            return builder.add(builder.add(start, builder.mul(row, index)), shift)

        def lanes_of(row: Any) -> list[Any]:
            return [vector(row, c) for c in own_columns]

        slopes = builder.add(of.attention, builder.mul(of.heads, of.attention_row))
        zeros = [emit.constant(0.0)] * (unit_count * column_count)
        with loop(builder, of.heads, zeros) as (i, sums, new):
            pulls = builder.add(builder.add(of.pull, wide), builder.mul(i, of.pull_row))
            factors = [vector(pulls, INDEX(j * LANES)) for j in own_units]
            new += along(sums, lanes_of(row_of(of.attention, of.attention_row, i)), factors)
        with loop(builder, of.score_maps, new) as (i, sums, gradients):
            scores = builder.add(builder.add(of.scores, unit), builder.mul(i, of.scores_row))
            factors = [number(scores, INDEX(j)) for j in own_units]
            gradients += along(sums, lanes_of(row_of(slopes, of.attention_row, i)), factors)

        first = row_of(of.hidden, of.hidden_row, unit)
        rows = [builder.add(first, builder.mul(of.hidden_row, INDEX(j))) for j in own_units]
        hidden = [lanes for row in rows for lanes in lanes_of(row)]
        gradients = [
            emit.where_positive(builder, r, d) for r, d in zip(hidden, gradients, strict=True)
        ]

        def add_to(start: Any, row: Any, index: Any, change: Callable[[int, Any], Any]) -> None:
            """Change a vector of each unit in a row of sums."""
            for j in own_units:
                at = builder.add(builder.add(start, builder.mul(row, index)), wide)
                place = offset(builder, base, at, INDEX(j * LANES))
                emit.store_at(builder, place, change(j, emit.load_at(builder, place)))

        def of_unit(j: int, values: list[Any]) -> list[Any]:
            return values[j * column_count : (j + 1) * column_count]

        def dot(lanes: list[Any], values: list[Any]) -> Callable[[int, Any], Any]:
            def change(j: int, total: Any) -> Any:
                own = of_unit(j, values)
                new = builder.fmul(lanes[0], own[0])
                for a, b in zip(lanes[1:], own[1:], strict=True):
                    new = emit.multiply_add(builder, a, b, new)
                return builder.fadd(total, new)

            return change

        def plain_sum(j: int, total: Any) -> Any:
            for value in of_unit(j, gradients):
                total = builder.fadd(total, value)
            return total

        add_to(of.embed, of.embed_row, of.token_dim, plain_sum)
        with loop(builder, of.token_dim, []) as (k, _, _):
            lanes = lanes_of(row_of(of.tokens, of.tokens_row, k))
            add_to(of.embed, of.embed_row, k, dot(lanes, gradients))
        with loop(builder, of.score_maps, []) as (i, _, _):
            lanes = lanes_of(row_of(slopes, of.attention_row, i))
            add_to(of.scores_grad, of.scores_grad_row, i, dot(lanes, hidden))

    cover(builder, of.units, of.columns, SHAPES, tile)
