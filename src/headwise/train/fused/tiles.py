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
MOST_ROWS, MOST_VECTORS = 6, 2  # 12 sums, 2 vectors, 1 number: 15 of AVX2's 16 registers
SPAN = MOST_VECTORS * LANES
HALF = LANES // 2
INDEX = ir.IntType(64)


@contextmanager
def _loop(builder: Any, count: Any, sums: list[Any]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Σ over k < count: yields k, the sums so far, and an empty list for the new sums.

    After the block, that list holds the sums of all k. count ≥ 1.
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
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)


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
    """One tile of at most MOST_ROWS × MOST_VECTORS vectors; `gate` is laid out like `out`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        base = emit.pointer(context, builder, memory, values[0], INDEX(0))
        rows, vectors, inner, left, left_row, left_inner = values[1:7]
        right, right_inner, out, out_row, mode, gate = values[7:]

        def place(*terms: Any) -> Any:
            at = terms[0]
            for term in terms[1:]:
                at = builder.add(at, term)
            return builder.gep(base, [at])

        def tile(row_count: int, vector_count: int) -> Callable[[], None]:
            cells = list(pairs(range(row_count), range(vector_count)))

            def write_out() -> None:
                row_starts = [builder.mul(left_row, INDEX(r)) for r in range(row_count)]
                with _loop(builder, inner, [emit.constant(0.0)] * len(cells)) as (k, sums, new):
                    down, across = builder.mul(k, right_inner), builder.mul(k, left_inner)
                    lanes = [
                        emit.load_at(builder, place(right, down, INDEX(v * LANES)))
                        for v in range(vector_count)
                    ]
                    for r in range(row_count):
                        number = builder.load(place(left, across, row_starts[r]))
                        factor = emit.spread(builder, number)
                        for v in range(vector_count):
                            total = sums[r * vector_count + v]
                            new.append(emit.multiply_add(builder, factor, lanes[v], total))
                cell_at = [
                    builder.add(builder.mul(out_row, INDEX(r)), INDEX(v * LANES)) for r, v in cells
                ]
                outs = [place(out, at) for at in cell_at]
                _finish(builder, mode, new, outs, [place(gate, at) for at in cell_at])

            return write_out

        sizes = pairs(range(1, MOST_ROWS + 1), range(1, MOST_VECTORS + 1))
        shape = builder.add(builder.mul(rows, INDEX(MOST_VECTORS + 1)), vectors)
        _cases(builder, shape, {r * (MOST_VECTORS + 1) + v: tile(r, v) for r, v in sizes})
        return context.get_dummy_value()

    return types.void(memory, *[types.intp] * 12), generate


@intrinsic
def dot_tile(
    typing: Any,
    memory: Any,
    rows: Any,
    columns: Any,
    vectors: Any,
    left: Any,
    left_row: Any,
    right: Any,
    right_row: Any,
    out: Any,
    out_row: Any,
    mode: Any,
) -> Any:
    """One tile of LANES sums: 2 rows × HALF columns, or 1 row × LANES columns.

    Columns at and beyond `columns` are computed from the last one and not written. `vectors` is
    the length of the sum in vectors.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        base = emit.pointer(context, builder, memory, values[0], INDEX(0))
        rows, columns, vectors, left, left_row, right, right_row, out, out_row, mode = values[1:]

        def place(start: Any, offset: Any) -> Any:
            return builder.gep(base, [builder.add(start, offset)])

        def write(sums: Any, row: int, column_count: int) -> None:
            kind = ir.VectorType(emit.FLOAT, column_count)
            lanes = range(row * column_count, (row + 1) * column_count)
            mask = ir.Constant(ir.VectorType(emit.INT32, column_count), list(lanes))
            part = builder.shuffle_vector(sums, sums, mask)
            start = builder.add(out, builder.mul(out_row, INDEX(row)))
            adding = builder.icmp_signed("==", mode, INDEX(ADD))
            whole = builder.icmp_signed(">=", columns, INDEX(column_count))
            with builder.if_else(whole) as (then, otherwise):
                with then:
                    target = place(start, INDEX(0))
                    old = emit.load_at(builder, target, kind)
                    old = builder.select(adding, old, emit.constant(0.0, kind))
                    emit.store_at(builder, target, builder.fadd(old, part))
                with otherwise:
                    for c in range(column_count - 1):
                        with builder.if_then(builder.icmp_signed(">", columns, INDEX(c))):
                            target = place(start, INDEX(c))
                            old = builder.select(adding, builder.load(target), emit.FLOAT(0.0))
                            one = builder.extract_element(part, emit.INT32(c))
                            builder.store(builder.fadd(old, one), target)

        def tile(row_count: int) -> Callable[[], None]:
            column_count = LANES // row_count

            def write_out() -> None:
                last = builder.sub(columns, INDEX(1))
                row_starts = [builder.mul(left_row, INDEX(r)) for r in range(row_count)]
                column_starts = []
                for c in range(column_count):
                    inside = builder.icmp_signed("<", INDEX(c), last)
                    index = builder.select(inside, INDEX(c), last)
                    column_starts.append(builder.mul(right_row, index))
                with _loop(builder, vectors, [emit.constant(0.0)] * LANES) as (k, sums, new):
                    along = builder.mul(k, INDEX(LANES))
                    row_at, column_at = builder.add(left, along), builder.add(right, along)
                    rights = [emit.load_at(builder, place(column_at, s)) for s in column_starts]
                    for r, start in enumerate(row_starts):
                        factor = emit.load_at(builder, place(row_at, start))
                        for c in range(column_count):
                            total = sums[r * column_count + c]
                            new.append(emit.multiply_add(builder, factor, rights[c], total))
                sums = emit.lane_sums(builder, new)
                for r in range(row_count):
                    write(sums, r, column_count)

            return write_out

        _cases(builder, rows, {1: tile(1), 2: tile(2)})
        return context.get_dummy_value()

    return types.void(memory, *[types.intp] * 10), generate
