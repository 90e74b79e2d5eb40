"""The two inner loops of every matrix product, as LLVM code whose sums stay in registers.

`outer_tile`: out[r, c] = Σ_k left[r, k]·right[k, c], lanes along c. A step over k loads a few
vectors of `right` and one number of `left` a row.
`dot_tile`: out[r, c] = Σ_k left[r, k]·right[c, k], lanes along k, so neither side is transposed;
the lanes are added up at the end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product as pairs
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from headwise.train.fused import emit
from headwise.train.fused.host import LANES

PLAIN, ADD, RELU, GATE = range(4)  # what happens to a finished tile; see `_finish`

# Vectors of a tile by its rows. Two FMA units with a latency of 4 need 8 sums in flight; AVX2 has
# 16 registers, of which 12 sums leave enough for the factors.
WIDTHS = {1: (8, 4, 2, 1), 2: (4, 2, 1), 3: (4, 2, 1), 4: (3, 2, 1), 5: (2, 1), 6: (2, 1)}
MOST_ROWS, MOST_VECTORS = max(WIDTHS), max(WIDTHS[1])
INDEX = ir.IntType(64)


@contextmanager
def _loop(builder: Any, count: Any, sums: list[Any]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """For each k < count: yields k, the sums so far, and an empty list for the new sums.

    After the block, that list holds the sums over all k. count ≥ 1.
    """
    before = builder.block
    body, after = builder.append_basic_block("k"), builder.append_basic_block("k.done")
    builder.branch(body)
    builder.position_at_end(body)
    k = builder.phi(INDEX)
    k.add_incoming(INDEX(0), before)
    running = []
    for value in sums:
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        running.append(phi)
    updated: list[Any] = []
    yield k, running, updated
    following = builder.add(k, INDEX(1))
    k.add_incoming(following, builder.block)
    for phi, value in zip(running, updated, strict=True):
        phi.add_incoming(value, builder.block)
    again = builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    _as_it_is(builder.module, again)
    builder.position_at_end(after)


def _as_it_is(module: Any, branch: Any) -> None:
    """Keep LLVM from unrolling the loop: with a dozen strides it would run out of registers."""
    plain = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    loop = module.add_metadata([plain, INDEX(len(module.metadata))])  # one of its own a loop
    loop.operands = (loop, plain)  # by convention its first entry is itself
    branch.set_metadata("llvm.loop", loop)


def _cases(builder: Any, selector: Any, cases: dict[int, Callable[[], None]]) -> None:
    """A switch; a selector outside the cases does nothing."""
    done = builder.append_basic_block("cases.done")
    switch = builder.switch(selector, done)
    for value, body in cases.items():
        block = builder.append_basic_block(f"case.{value}")
        switch.add_case(INDEX(value), block)
        builder.position_at_end(block)
        body()
        builder.branch(done)
    builder.position_at_end(done)


def _finish(builder: Any, mode: Any, sums: list[Any], outs: list[Any], gates: list[Any]) -> None:
    """Write the sums: as they are, added to what is there, clamped at 0, or where a gate is > 0."""

    def write(change: Callable[[Any, Any, Any], Any]) -> Callable[[], None]:
        def write_out() -> None:
            for value, out, gate in zip(sums, outs, gates, strict=True):
                emit.store_at(builder, out, change(value, out, gate))

        return write_out

    zero = emit.constant(0.0)
    changes = {
        PLAIN: lambda value, out, gate: value,
        ADD: lambda value, out, gate: builder.fadd(emit.load_at(builder, out), value),
        RELU: lambda value, out, gate: emit.at_least(builder, zero, value),
        GATE: lambda value, out, gate: emit.where_positive(
            builder, emit.load_at(builder, gate), value
        ),
    }
    _cases(builder, mode, {name: write(change) for name, change in changes.items()})


@intrinsic
def outer_tile(
    typing: Any,
    memory: Any,
    rows: Any,
    vectors: Any,
    down: Any,
    across: Any,
    inner: Any,
    left: Any,
    left_row: Any,
    left_inner: Any,
    right: Any,
    right_inner: Any,
    out: Any,
    out_row: Any,
    mode: Any,
    gate: Any,
) -> Any:
    """A grid of `down` × `across` tiles of a size in WIDTHS; `gate` is laid out like `out`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        base = emit.pointer(context, builder, memory, values[0], INDEX(0))
        rows, vectors, down, across, inner, left, left_row, left_inner = values[1:9]
        right, right_inner, out, out_row, mode, gate = values[9:]

        def place(*terms: Any) -> Any:
            at = terms[0]
            for term in terms[1:]:
                at = builder.add(at, term)
            return builder.gep(base, [at])

        def tile(row_count: int, vector_count: int) -> Callable[[], None]:
            cells = list(pairs(range(row_count), range(vector_count)))

            def one(row: Any, column: Any) -> None:
                row_starts = [builder.mul(left_row, INDEX(r)) for r in range(row_count)]
                first = builder.add(left, builder.mul(row, left_row))
                start = builder.add(right, column)
                with _loop(builder, inner, [emit.constant(0.0)] * len(cells)) as (k, sums, new):
                    lower, further = builder.mul(k, right_inner), builder.mul(k, left_inner)
                    lanes = [
                        emit.load_at(builder, place(start, lower, INDEX(v * LANES)))
                        for v in range(vector_count)
                    ]
                    for r in range(row_count):
                        number = builder.load(place(first, further, row_starts[r]))
                        factor = emit.spread(builder, number)
                        for v in range(vector_count):
                            total = sums[r * vector_count + v]
                            new.append(emit.multiply_add(builder, factor, lanes[v], total))
                cell_at = [
                    builder.add(builder.mul(out_row, INDEX(r)), INDEX(v * LANES)) for r, v in cells
                ]
                shift = builder.add(builder.mul(row, out_row), column)
                outs = [place(out, shift, at) for at in cell_at]
                _finish(builder, mode, new, outs, [place(gate, shift, at) for at in cell_at])

            def all_of_them() -> None:
                with _loop(builder, down, []) as (d, _, _), _loop(builder, across, []) as (a, _, _):
                    row = builder.mul(d, INDEX(row_count))
                    one(row, builder.mul(a, INDEX(vector_count * LANES)))

            return all_of_them

        sizes = [(r, v) for r, widths in WIDTHS.items() for v in widths]
        shape = builder.add(builder.mul(rows, INDEX(MOST_VECTORS + 1)), vectors)
        _cases(builder, shape, {r * (MOST_VECTORS + 1) + v: tile(r, v) for r, v in sizes})
        return context.get_dummy_value()

    return types.void(memory, *[types.intp] * 14), generate


@intrinsic
def dot_tile(
    typing: Any,
    memory: Any,
    rows: Any,
    tiles: Any,
    vectors: Any,
    left: Any,
    left_row: Any,
    right: Any,
    right_row: Any,
    out: Any,
    out_row: Any,
    mode: Any,
) -> Any:
    """Neighbouring tiles: 2 rows × LANES/2 columns, 1 row × LANES columns, or single sums.

    `rows` is 2 or 1, or 0 for single sums. `vectors` is the length of the sums in vectors.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        base = emit.pointer(context, builder, memory, values[0], INDEX(0))
        rows, tiles, vectors, left, left_row, right, right_row, out, out_row, mode = values[1:]

        def place(start: Any, offset: Any) -> Any:
            return builder.gep(base, [builder.add(start, offset)])

        def sums_over(first: Any, row_count: int, column_count: int) -> list[Any]:
            """Of the columns of `right` that begin with the given one."""
            start = builder.add(right, builder.mul(first, right_row))
            row_starts = [builder.mul(left_row, INDEX(r)) for r in range(row_count)]
            column_starts = [builder.mul(right_row, INDEX(c)) for c in range(column_count)]
            zeros = [emit.constant(0.0)] * (row_count * column_count)
            with _loop(builder, vectors, zeros) as (k, sums, new):
                along = builder.mul(k, INDEX(LANES))
                row_at, column_at = builder.add(left, along), builder.add(start, along)
                rights = [emit.load_at(builder, place(column_at, s)) for s in column_starts]
                for r, start in enumerate(row_starts):
                    factor = emit.load_at(builder, place(row_at, start))
                    for c in range(column_count):
                        total = sums[r * column_count + c]
                        new.append(emit.multiply_add(builder, factor, rights[c], total))
            return new

        def write(value: Any, row: int, first: Any) -> None:
            """Store a number or a vector of consecutive columns, added to the old in mode ADD."""
            target = place(out, builder.add(first, builder.mul(out_row, INDEX(row))))
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
            write(emit.fold_lanes(builder, lanes, builder.fadd), 0, first)

        def across(step: int, one: Callable[[Any], None]) -> None:
            with _loop(builder, tiles, []) as (t, _, _):
                one(builder.mul(t, INDEX(step)))

        _cases(builder, rows, {0: lambda: across(1, single), 1: tile(1), 2: tile(2)})
        return context.get_dummy_value()

    return types.void(memory, *[types.intp] * 10), generate
