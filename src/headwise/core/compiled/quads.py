"""Four numbers of each lane's row ↔ four vectors, by shuffles instead of number by number.

LANES rows of four numbers are loaded, and joined to four vectors of which vector i has the rows
i, i + 4, i + 8, …; every group of four lanes is then a 4×4 matrix, which is transposed.
"""

from typing import Any

from llvmlite import ir
from numba import types

from headwise.core.compiled import emit
from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import MEMORY, operation

PLACES = types.int64[::1]

_FOUR = ir.VectorType(emit.FLOAT, 4)


@operation(types.void, MEMORY, types.intp, MEMORY, PLACES, types.intp)
def gather_four(builder: Any, memory: Any, at: Any, source: Any, places: Any, here: Any) -> None:
    """Four numbers from source[places[lane] + here] on, as four vectors from `at` on."""
    rows = [emit.load_at(builder, start, _FOUR) for start in _starts(builder, source, places, here)]
    vectors = _transposed(builder, [_joined(builder, rows[i::4]) for i in range(4)])
    for place, vector in zip(_four_places(builder, memory, at), vectors, strict=True):
        emit.store_at(builder, place, vector)


@operation(types.void, MEMORY, types.intp, MEMORY, PLACES, types.intp)
def scatter_four(builder: Any, memory: Any, at: Any, target: Any, places: Any, here: Any) -> None:
    """The inverse of `gather_four`."""
    vectors = [emit.load_at(builder, place) for place in _four_places(builder, memory, at)]
    vectors = _transposed(builder, vectors)
    for lane, start in enumerate(_starts(builder, target, places, here)):
        vector, first = vectors[lane % 4], lane - lane % 4
        row = builder.shuffle_vector(vector, vector, _lanes(range(first, first + 4)))
        emit.store_at(builder, start, row)


def _starts(builder: Any, source: Any, places: Any, here: Any) -> list[Any]:
    found = [builder.load(builder.gep(places, [here.type(lane)])) for lane in range(LANES)]
    return [builder.gep(source, [builder.add(place, here)]) for place in found]


def _four_places(builder: Any, memory: Any, at: Any) -> list[Any]:
    return [builder.gep(memory, [builder.add(at, at.type(i * LANES))]) for i in range(4)]


def _transposed(builder: Any, vectors: list[Any]) -> list[Any]:
    """Number of a vector and number of a lane in its group trade their bits, one bit a round."""
    for bit in (1, 2):
        low = _lanes(LANES + i - bit if i & bit else i for i in range(LANES))
        high = _lanes(LANES + i if i & bit else i + bit for i in range(LANES))
        for i in (0, 3 - bit):
            a, b = vectors[i], vectors[i + bit]
            vectors[i] = builder.shuffle_vector(a, b, low)
            vectors[i + bit] = builder.shuffle_vector(a, b, high)
    return vectors


def _joined(builder: Any, parts: list[Any]) -> Any:
    """Vectors one behind the other."""
    while len(parts) > 1:
        both = _lanes(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle_vector(a, b, both) for a, b in pairs]
    return parts[0]


def _lanes(numbers: Any) -> ir.Constant:
    numbers = list(numbers)
    return ir.Constant(ir.VectorType(emit.INT32, len(numbers)), numbers)
