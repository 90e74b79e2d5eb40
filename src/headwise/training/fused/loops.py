"""Loops and switches as LLVM code, and how tiles cover a matrix."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

INDEX = ir.IntType(64)


@contextmanager
def loop(builder: Any, count: Any, sums: list[Any]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
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
    own = module.add_metadata([plain, INDEX(len(module.metadata))])  # one of its own a loop
    own.operands = (own, plain)  # by convention its first entry is itself
    branch.set_metadata("llvm.loop", own)


def cases(builder: Any, selector: Any, bodies: dict[int, Callable[[], None]]) -> None:
    """A switch; a selector outside the cases does nothing."""
    done = builder.append_basic_block("cases.done")
    switch = builder.switch(selector, done)
    for value, body in bodies.items():
        block = builder.append_basic_block(f"case.{value}")
        switch.add_case(INDEX(value), block)
        builder.position_at_end(block)
        body()
        builder.branch(done)
    builder.position_at_end(done)


def cover(
    builder: Any,
    rows: Any,
    columns: Any,
    shapes: Mapping[int, tuple[int, ...]],
    tile: Callable[[int, int, Any, Any], None],
) -> None:
    """Cover rows × columns with tiles, the largest first; `shapes` has the widths by height.

    `tile` gets its height and width as constants, then its first row and column.
    """
    row: Any = INDEX(0)
    for height, widths in shapes.items():
        down = builder.udiv(builder.sub(rows, row), INDEX(height))
        with builder.if_then(builder.icmp_signed(">", down, INDEX(0))):
            column: Any = INDEX(0)
            for width in widths:
                across = builder.udiv(builder.sub(columns, column), INDEX(width))
                with (
                    builder.if_then(builder.icmp_signed(">", across, INDEX(0))),
                    loop(builder, across, []) as (a, _, _),
                    loop(builder, down, []) as (d, _, _),
                ):
                    y = builder.add(row, builder.mul(d, INDEX(height)))
                    x = builder.add(column, builder.mul(a, INDEX(width)))
                    tile(height, width, y, x)
                column = builder.add(column, builder.mul(across, INDEX(width)))
        row = builder.add(row, builder.mul(down, INDEX(height)))


def offset(builder: Any, base: Any, *terms: Any) -> Any:
    """The place so many floats behind `base`."""
    at = terms[0]
    for term in terms[1:]:
        at = builder.add(at, term)
    return builder.gep(base, [at])
