"""Which arithmetic a network computes in, and whether its weights are those that were built.

A certificate is for weights rounded once to a known precision. A network carries no mark of what
was done to it (`.float().double()` is in double precision again, with rounded weights), so a
construction keeps digests of its weights as each precision stores them, and a certificate is given
only for weights that have one of these.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from headwise.core.errors import InputError


class Precision(NamedTuple):
    """A floating-point format: unit round-off u, and all that gradual underflow can add."""

    name: str
    dtype: torch.dtype
    unit: float
    underflow: float


DOUBLE = Precision("double precision", torch.float64, 2.0**-53, 1e-290)
SINGLE = Precision("single precision", torch.float32, 2.0**-24, 1e-30)
BRAIN = Precision("bfloat16", torch.bfloat16, 2.0**-8, 1e-30)
PRECISIONS = (DOUBLE, SINGLE, BRAIN)
"""From the finest to the coarsest. Half precision overflows at 65,504, which scores exceed."""

State = tuple[str, tuple[torch.dtype, ...]]


def digests(weights: Mapping[str, Tensor]) -> dict[str, Precision]:
    """Digest of the weights as a precision stores them → that precision."""
    return {_digest(weights, each.dtype): each for each in reversed(PRECISIONS)}


def precision_of(net: nn.Module, known: Mapping[str, Precision]) -> Precision:
    """In what the network computes and stores: the coarser of the two; or why that is not known."""
    weights = dict(net.named_parameters())
    computed = {value.dtype for value in weights.values()}
    names = {each.dtype: each for each in PRECISIONS}
    if len(computed) != 1 or not computed <= names.keys():
        found = ", ".join(sorted(str(each).removeprefix("torch.") for each in computed))
        raise InputError(
            f"the network is in {found}: there is no certificate for that arithmetic; there is one "
            "for float64, float32 and bfloat16"
        )
    stored = known.get(_digest(weights, torch.float64))
    if stored is None:
        raise InputError(
            "the network's weights are no longer those that were built: there is no certificate "
            "for "
            "weights that were changed"
        )
    return max(stored, names[computed.pop()], key=lambda each: each.unit)


def state_of(net: nn.Module) -> State:
    """Changes whenever a weight is replaced, converted or written to, by whatever way."""
    weights = dict(net.named_parameters())
    return _digest(weights, torch.float64), tuple(p.dtype for p in weights.values())


def _digest(weights: Mapping[str, Tensor], dtype: torch.dtype) -> str:
    total = hashlib.blake2b(digest_size=16)
    for name in sorted(weights):
        stored = weights[name].detach().to(dtype).double().contiguous()
        total.update(stored.numpy().tobytes())
    return total.hexdigest()
