"""A vector value for numba: LLVM's <LANES x float>, which LLVM fits to the CPU at hand.

Memory is one array of float32; `load(memory, at)` reads LANES numbers from offset `at`.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from numba import types
from numba.extending import intrinsic, models, register_model

from headwise.train.fused import emit
from headwise.train.fused.host import LANES


class VectorType(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


VECTOR = VectorType()


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, emit.FLOATS)


def operation(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of fixed types from a function of builder and values."""

    def make(body: Callable[..., Any]) -> Any:
        def define(typing: Any, *given: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return body(builder, *values)

            return result(*arguments), generate

        define.__name__ = body.__name__
        names = ["typing", *(f"value{i}" for i in range(len(arguments)))]  # numba wants names
        define.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        return intrinsic(define)

    return make


@intrinsic
def load(typing: Any, memory: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit.load_at(builder, emit.pointer(context, builder, memory, *values))

    return VECTOR(memory, types.intp), generate


@intrinsic
def store(typing: Any, memory: Any, at: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, at, vector = values
        emit.store_at(builder, emit.pointer(context, builder, memory, array, at), vector)
        return context.get_dummy_value()

    return types.void(memory, types.intp, VECTOR), generate


@intrinsic
def prefetch(typing: Any, memory: Any, at: Any) -> Any:
    """Bring the cache line of memory[at] near; it will be read."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit.prefetch(builder, emit.pointer(context, builder, memory, *values))
        return context.get_dummy_value()

    return types.void(memory, types.intp), generate


@operation(VECTOR, types.float32)
def splat(builder: Any, scalar: Any) -> Any:
    return emit.spread(builder, scalar)


@operation(VECTOR, VECTOR, VECTOR)
def add(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def sub(builder: Any, a: Any, b: Any) -> Any:
    return builder.fsub(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def mul(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b)


@operation(VECTOR, VECTOR, VECTOR)
def div(builder: Any, a: Any, b: Any) -> Any:
    return builder.fdiv(a, b)


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return emit.multiply_add(builder, a, b, c)


@operation(VECTOR, VECTOR)
def sqrt(builder: Any, x: Any) -> Any:
    return emit.call(builder, "sqrt", x)


@operation(VECTOR, VECTOR, VECTOR)
def maximum(builder: Any, a: Any, b: Any) -> Any:
    return emit.at_least(builder, a, b)


@operation(VECTOR, VECTOR)
def exp(builder: Any, x: Any) -> Any:
    return emit.exponential(builder, x)


@operation(types.float32, VECTOR)
def total(builder: Any, x: Any) -> Any:
    return emit.fold_lanes(builder, x, builder.fadd)


@operation(types.float32, VECTOR)
def largest(builder: Any, x: Any) -> Any:
    return emit.fold_lanes(builder, x, lambda a, b: emit.at_least(builder, a, b))


@intrinsic
def gelu(typing: Any, x: Any) -> Any:
    """x·Φ(x) and its derivative Φ(x) + x·φ(x)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (x,) = values
        share, density = emit.normal(builder, x)
        pair = [builder.fmul(x, share), emit.multiply_add(builder, x, density, share)]
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(VECTOR, 2)(VECTOR), generate
