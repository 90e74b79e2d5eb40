"""What an attention layer costs, in what budgets count: parameters, cache bytes, FLOPs.

The layer has `heads` heads with queries and keys of `qk_dim` and values of `v_dim` numbers, in a
model of `width`; no biases, and every head has its own keys and values.
"""

from collections.abc import Callable

from headwise.core.errors import InputError
from headwise.theory.checks import one_of, whole

COUNTS = ("parameters", "cache", "flops")


def parameters(width: int, heads: int, qk_dim: int, v_dim: int) -> int:
    """Weights of the query, key, value and output projections."""
    width, heads = whole("width", width), whole("heads", heads)
    qk_dim, v_dim = whole("qk_dim", qk_dim), whole("v_dim", v_dim)
    return 2 * width * heads * (qk_dim + v_dim)


def cache_bytes(heads: int, qk_dim: int, v_dim: int, element_bytes: int = 2) -> int:
    """What one token leaves in the key–value cache; two bytes a number, as in bfloat16."""
    heads, element_bytes = whole("heads", heads), whole("element_bytes", element_bytes)
    qk_dim, v_dim = whole("qk_dim", qk_dim), whole("v_dim", v_dim)
    return element_bytes * heads * (qk_dim + v_dim)


def flops(width: int, heads: int, qk_dim: int, v_dim: int, length: int) -> int:
    """Multiply–adds times two for one token that attends to `length` others."""
    length = whole("length", length)
    return 2 * parameters(width, heads, qk_dim, v_dim) + 2 * length * heads * (qk_dim + v_dim)


def cost_function(
    counts: str, width: int, length: int | None = None, element_bytes: int = 2
) -> Callable[[int, int, int], int]:
    """(heads, qk_dim, v_dim) → cost of a layer, in what the budget `counts`."""
    one_of("counts", counts, COUNTS)
    width, element_bytes = whole("width", width), whole("element_bytes", element_bytes)
    if counts == "parameters":
        return lambda heads, qk_dim, v_dim: parameters(width, heads, qk_dim, v_dim)
    if counts == "cache":
        return lambda heads, qk_dim, v_dim: cache_bytes(heads, qk_dim, v_dim, element_bytes)
    if length is None:
        raise InputError("FLOPs depend on the length: give the number of tokens attended to")
    seen = whole("length", length)
    return lambda heads, qk_dim, v_dim: flops(width, heads, qk_dim, v_dim, seen)
