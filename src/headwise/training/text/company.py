"""How many decoders a processor trains as one stack: as many as gain by it and are none the wiser.

A stack spares what a step costs beside its sums. Four decoders of width 32 and 1,024 tokens a step
are 1.15 to 1.2 times as fast as one, two of twice the width or with twice as many tokens 1.05
times; with 2,048 tokens of width 64 little is left (0.99 to 1.05), since what a sub-layer hands on
no longer stays in a cache. All that is compiled treats a member by itself. Products of matrices are
a library's, which might multiply a stack in another order than one member's matrices: so the
products of this very decoder are tried first, and where one bit differs, members are computed one
after the other.
"""

from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets import DecoderShape
from headwise.nets.attention import fits_compiled
from headwise.nets.compiled import compiled_for
from headwise.nets.variants.plain import PlainHeads
from headwise.training.adamw import FlatAdamW

_NUMBERS = 1 << 17  # tokens × width that a stack has in a step, at most
_MOST = 8  # more gain nothing
_MAPS = "table", "qkv.weight", "out.weight", "up.weight", "down.weight"


def worth_stacking(shape: DecoderShape, tokens: int) -> int:
    """How many decoders that take so many tokens a step gain by being stacked; 1 is none."""
    plain = isinstance(shape.variant, PlainHeads)
    return max(1, min(_MOST, _NUMBERS // (tokens * shape.width))) if plain else 1


def members_of_a_stack(shape: DecoderShape, batch: int, length: int, members: int) -> int:
    """How many of the members a CPU computes together, each to the last bit as if alone."""
    size = min(members, worth_stacking(shape, batch * length))
    if size == 1 or not _is_compiled(shape, length):
        return 1
    sizes = {size, members % size} - {0, 1}
    return size if all(_multiplied_alike(shape, batch * length, each) for each in sizes) else 1


def _is_compiled(shape: DecoderShape, length: int) -> bool:
    """Is all but the products of matrices compiled?"""
    steps = compiled_for(torch.empty(0))
    fits = all(fits_compiled(length, layer) for layer in shape.layers)
    return steps is not None and fits and shape.width % steps.lanes == 0


@lru_cache(maxsize=256)
def _multiplied_alike(shape: DecoderShape, tokens: int, members: int) -> bool:
    """Are the products of a stack, forwards and backwards, those of its members alone?"""
    initial, rng = shape.initial_params(0), torch.Generator().manual_seed(0)
    together, alone = (
        FlatAdamW(shape, [initial] * count, (0.9, 0.95), 0.0, "cpu").leaves(slice(0, count))
        for count in (members, 1)
    )
    names = {size: name for name, size in shape.parameter_shapes().items() if name.endswith(_MAPS)}
    for (out, into), name in names.items():
        rows, slopes = (torch.randn(members, tokens, size, generator=rng) for size in (into, out))
        found = products(rows, slopes, together[name].detach())
        for member in range(members):
            own = slice(member, member + 1)
            wanted = products(rows[own].clone(), slopes[own].clone(), alone[name].detach())
            if not all(map(torch.equal, wanted, (each[own] for each in found))):
                return False
    return True


def products(
    rows: Float[Tensor, "members tokens into"],
    slopes: Float[Tensor, "members tokens out"],
    weight: Float[Tensor, "members out into"],
) -> list[Tensor]:
    """Those that a step takes of a map, what it reads and the gradients of what it gives."""
    forwards = [torch.bmm(rows, weight.mT), torch.baddbmm(slopes, rows, weight.mT)]
    weights = [torch.bmm(slopes.mT, rows), torch.bmm(rows.mT, slopes)]
    return [*forwards, torch.bmm(slopes, weight), torch.baddbmm(rows, slopes, weight), *weights]
