"""Functions of an LLVM builder and LLVM values: vectors of LANES floats and what is done to them.

No fast-math flag is set anywhere: operations happen in the order written, products are fused with
sums only where `multiply_add` says so, and NaN goes through every function, so that a diverging
network shows a loss that is not finite.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from headwise.core.compiled.host import LANES

FLOAT, INT32 = ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)

EXP_TAIL = (0.001381454, 0.0083687454, 0.041668389, 0.16666521, 0.49999994)
NORMAL_TAIL = (
    *(0.029377848, -0.12848602, 0.17385672, -0.07378503, 0.11092029),
    *(0.070763007, 0.10213066, 0.10749943, 0.10772312),
)


def constant(value: float | int, kind: ir.Type = FLOATS) -> ir.Constant:
    """The same number in all lanes, known when compiled."""
    return ir.Constant(kind, [value] * kind.count)


def load_at(builder: Any, place: Any, kind: ir.Type = FLOATS) -> Any:
    """A vector from memory, of any alignment of floats."""
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=4)


def store_at(builder: Any, place: Any, value: Any) -> None:
    """A vector to memory, of any alignment of floats."""
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=4)


def spread(builder: Any, scalar: Any) -> Any:
    """One number in all lanes."""
    first = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), scalar, INT32(0))
    return builder.shuffle_vector(first, first, ir.Constant(INTS, [0] * LANES))


def spread_at(builder: Any, place: Any) -> Any:
    """The number at a place of memory, in all lanes."""
    return spread(builder, builder.load(place))


def call(builder: Any, name: str, *values: Any) -> Any:
    """An LLVM intrinsic on vectors; where the CPU fuses, `fmuladd` is one rounding, else two."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(values))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, values)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c."""
    return call(builder, "fmuladd", a, b, c)


def polynomial(builder: Any, x: Any, highest_first: tuple[float, ...]) -> Any:
    """Horner's scheme."""
    value = constant(highest_first[0])
    for coefficient in highest_first[1:]:
        value = multiply_add(builder, value, x, constant(coefficient))
    return value


def at_least(builder: Any, floor: Any, x: Any) -> Any:
    """max(floor, x); NaN in x stays NaN."""
    return builder.select(builder.fcmp_ordered(">", floor, x), floor, x)


def where_positive(builder: Any, gate: Any, x: Any) -> Any:
    """x where the gate is positive, else 0."""
    return builder.select(builder.fcmp_ordered(">", gate, constant(0.0)), x, constant(0.0))


def exponential(builder: Any, x: Any) -> Any:
    """exp(x) for x ≤ 0 within 2 ulp, 0 below −87; the reduction of Cephes' expf.

    x = n·log 2 + f with |f| ≤ log 2/2, and exp(x) = 2ⁿ·exp(f), where exp(f) is 1 + f + f²·tail(f)
    within 3e-9: the tail was fitted for the smallest relative error.
    """
    small = builder.fcmp_ordered("<", x, constant(-87.0))
    magic = constant(12582912.0)  # 1.5·2²³: adding it leaves the nearest integer in the low bits
    shifted = multiply_add(builder, x, constant(1.4426950408889634), magic)
    n = builder.fsub(shifted, magic)
    f = multiply_add(builder, n, constant(-0.693359375), x)
    f = multiply_add(builder, n, constant(2.12194440e-4), f)
    tail = polynomial(builder, f, EXP_TAIL)
    value = multiply_add(builder, builder.fmul(f, f), tail, builder.fadd(f, constant(1.0)))
    bits = builder.shl(builder.bitcast(shifted, INTS), constant(23, INTS))
    power = builder.bitcast(builder.add(bits, constant(127 << 23, INTS)), FLOATS)
    return builder.select(small, constant(0.0), builder.fmul(value, power))


def normal(builder: Any, x: Any) -> tuple[Any, Any]:
    """Distribution function Φ(x) and density φ(x) of the normal distribution.

    Φ(−a) = exp(−a²/2)·t·Q(t) for a ≥ 0, with t = 1/(1 + 0.27a) and Q fitted by weighted least
    squares at Chebyshev points up to a = 14.5: 3e-8 relative, so small values keep their digits.
    """
    size = call(builder, "fabs", x)
    bell = exponential(builder, builder.fmul(builder.fmul(x, x), constant(-0.5)))
    t = builder.fdiv(constant(1.0), multiply_add(builder, constant(0.27), size, constant(1.0)))
    below = builder.fmul(builder.fmul(polynomial(builder, t, NORMAL_TAIL), t), bell)
    negative = builder.fcmp_ordered("<", x, constant(0.0))
    share = builder.select(negative, below, builder.fsub(constant(1.0), below))
    return share, builder.fmul(bell, constant(0.3989422804014327))


def lane_sums(builder: Any, vectors: list[Any]) -> Any:
    """LANES vectors → one vector whose lane i is the sum of the lanes of vectors[i].

    A round adds two shuffles of each pair (a, b), so that half of the new lanes belong to a and
    half to b. Two rounds stay inside groups of four lanes, where shuffles are cheapest (and avoid
    the pattern of x86's slow horizontal add); after them a group holds sums of four vectors, and
    whole groups are added.
    """
    groups, second = range(0, LANES, 4), LANES
    masks = [
        ([g + i for g in groups for i in (0, second, 1, second + 1)], 2),
        ([g + i for g in groups for i in (0, 1, second, second + 1)], 2),
    ]
    across = [g + i for base in (0, second) for g in groups[::2] for i in range(base, base + 4)]
    masks += [(across, 4)] * (LANES.bit_length() - 3)
    for first, step in masks:
        low, high = ir.Constant(INTS, first), ir.Constant(INTS, [i + step for i in first])
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, low), builder.shuffle_vector(a, b, high))
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def fold_lanes(builder: Any, x: Any) -> Any:
    """The sum of all lanes: the upper half is added to the lower until one is left."""
    half = LANES // 2
    while half:
        swap = ir.Constant(INTS, [(i + half) % LANES for i in range(LANES)])
        x = builder.fadd(x, builder.shuffle_vector(x, x, swap))
        half //= 2
    return builder.extract_element(x, INT32(0))
