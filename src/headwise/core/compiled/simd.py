"""A vector value for numba: LLVM's <LANES x float>, which LLVM fits to the CPU at hand.

Memory is one array of float32; `load(memory, at)` reads LANES numbers from offset `at`.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from numba import types
from numba.extending import intrinsic, models, register_model

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES


class VectorType(types.Type):
    """The type of a vector of floats, as numba sees it."""

    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


VECTOR = VectorType()
MEMORY = types.float32[::1]


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """How such a vector is held: as an LLVM vector."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, emit.FLOATS)


def operation(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of fixed types from a function of builder and values.

    In place of an array the function gets the address of its first number.
    """

    def make(body: Callable[..., Any]) -> Any:
        def define(typing: Any, *given: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                plain = [
                    context.make_array(kind)(context, builder, value).data
                    if isinstance(kind, types.Array)
                    else value
                    for kind, value in zip(arguments, values, strict=True)
                ]
                made = body(builder, *plain)
                return context.get_dummy_value() if result == types.void else made

            return result(*arguments), generate

        define.__name__ = body.__name__
        names = ["typing", *(f"value{i}" for i in range(len(arguments)))]  # numba wants names
        define.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        return intrinsic(define)

    return make


@operation(VECTOR, MEMORY, types.intp)
def load(builder: Any, memory: Any, at: Any) -> Any:
    """The vector that starts at memory[at]."""
    return emit.load_at(builder, builder.gep(memory, [at]))


@operation(types.void, MEMORY, types.intp, VECTOR)
def store(builder: Any, memory: Any, at: Any, vector: Any) -> None:
    """Write a vector from memory[at] on."""
    emit.store_at(builder, builder.gep(memory, [at]), vector)


@operation(VECTOR, types.float32)
def splat(builder: Any, scalar: Any) -> Any:
    """One number in all lanes."""
    return emit.spread(builder, scalar)


@operation(VECTOR, VECTOR, VECTOR)
def add(builder: Any, a: Any, b: Any) -> Any:
    """a + b."""
    return builder.fadd(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def sub(builder: Any, a: Any, b: Any) -> Any:
    """a − b."""
    return builder.fsub(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def mul(builder: Any, a: Any, b: Any) -> Any:
    """a·b."""
    return builder.fmul(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def div(builder: Any, a: Any, b: Any) -> Any:
    """a/b."""
    return builder.fdiv(a, b)


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c."""
    return emit.multiply_add(builder, a, b, c)


@operation(VECTOR, VECTOR)
def sqrt(builder: Any, x: Any) -> Any:
    """√a."""
    return emit.call(builder, "sqrt", x)


@operation(VECTOR, VECTOR, VECTOR)
def maximum(builder: Any, a: Any, b: Any) -> Any:
    """The larger of a and b, lane by lane."""
    return emit.at_least(builder, a, b)


@operation(VECTOR, VECTOR, VECTOR)
def minimum(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of a and b, lane by lane."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def replaced_below(builder: Any, a: Any, least: Any, other: Any) -> Any:
    """a, and `other` where a < least, lane by lane."""
    return builder.select(builder.fcmp_ordered("<", a, least), other, a)


@operation(VECTOR, VECTOR, VECTOR)
def where_positive(builder: Any, gate: Any, a: Any) -> Any:
    """a where the gate is positive, else 0, lane by lane."""
    return emit.where_positive(builder, gate, a)


@operation(VECTOR, VECTOR)
def exp(builder: Any, x: Any) -> Any:
    """exp(a) for a ≤ 0."""
    return emit.exponential(builder, x)


@operation(types.float32, VECTOR)
def total(builder: Any, x: Any) -> Any:
    """The sum over all lanes."""
    return emit.fold_lanes(builder, x)


@operation(VECTOR, MEMORY, types.intp)
def sum_lanes(builder: Any, memory: Any, at: Any) -> Any:
    """Of LANES vectors from offset `at`: the sum of each one's lanes."""
    places = [builder.gep(memory, [builder.add(at, at.type(i * LANES))]) for i in range(LANES)]
    return emit.lane_sums(builder, [emit.load_at(builder, place) for place in places])


@intrinsic
def gelu(typing: Any, x: Any) -> Any:
    """x·Φ(x) and its derivative Φ(x) + x·φ(x)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (x,) = values
        share, density = emit.normal(builder, x)
        pair = [builder.fmul(x, share), emit.multiply_add(builder, x, density, share)]
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(VECTOR, 2)(VECTOR), generate
