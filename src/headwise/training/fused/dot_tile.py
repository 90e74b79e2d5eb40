"""The inner loop of products of rows with rows, as LLVM code whose sums stay in registers.

out[r, c] = Σ_k left[r, k]·right[c, k], lanes along k, so neither side is transposed; the lanes are
added up at the end.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import MEMORY, operation
from headwise.training.fused.loops import INDEX, cases, loop, offset
from headwise.training.fused.tiles import ADD


@operation(types.void, MEMORY, *[types.intp] * 10)
def dot_tile(builder: Any, base: Any, *values: Any) -> None:
    """Neighbouring tiles: 2 rows × LANES/2 columns, 1 row × LANES columns, or single sums.

    `rows` is 2 or 1, or 0 for single sums. `vectors` is the length of the sums in vectors.
    """
    rows, tiles, vectors, left, left_row, right, right_row, out, out_row, mode = values

    def sums_over(first: Any, row_count: int, column_count: int) -> list[Any]:
        """Of the columns of `right` that begin with the given one."""
        start = builder.add(right, builder.mul(first, right_row))
        row_starts = [builder.mul(left_row, INDEX(r)) for r in range(row_count)]
        column_starts = [builder.mul(right_row, INDEX(c)) for c in range(column_count)]
        zeros = [emit.constant(0.0)] * (row_count * column_count)
        with loop(builder, vectors, zeros) as (k, sums, new):
            along = builder.mul(k, INDEX(LANES))
            row_at, column_at = builder.add(left, along), builder.add(start, along)
            rights = [
                emit.load_at(builder, offset(builder, base, column_at, s)) for s in column_starts
            ]
            for r, start in enumerate(row_starts):
                factor = emit.load_at(builder, offset(builder, base, row_at, start))
                for c in range(column_count):
                    total = sums[r * column_count + c]
                    new.append(emit.multiply_add(builder, factor, rights[c], total))
        return new

    def write(value: Any, row: int, first: Any) -> None:
        """Store a number or a vector of consecutive columns, added to the old in mode ADD."""
        target = offset(builder, base, out, first, builder.mul(out_row, INDEX(row)))
        adding = builder.icmp_signed("==", mode, INDEX(ADD))
        with builder.if_else(adding) as (then, otherwise):
            with then:
                old = emit.load_at(builder, target, value.type)
                emit.store_at(builder, target, builder.fadd(old, value))
            with otherwise:
                emit.store_at(builder, target, value)

    def tile(row_count: int) -> Callable[[], None]:
        column_count = LANES // row_count

        def one(first: Any) -> None:
            sums = emit.lane_sums(builder, sums_over(first, row_count, column_count))
            for r in range(row_count):
                lanes = list(range(r * column_count, (r + 1) * column_count))
                mask = ir.Constant(ir.VectorType(emit.INT32, column_count), lanes)
                write(builder.shuffle_vector(sums, sums, mask), r, first)

        return lambda: across(column_count, one)

    def single(first: Any) -> None:
        (lanes,) = sums_over(first, 1, 1)
        write(emit.fold_lanes(builder, lanes), 0, first)

    def across(step: int, one: Callable[[Any], None]) -> None:
        with loop(builder, tiles, []) as (t, _, _):
            one(builder.mul(t, INDEX(step)))

    cases(builder, rows, {0: lambda: across(1, single), 1: tile(1), 2: tile(2)})
