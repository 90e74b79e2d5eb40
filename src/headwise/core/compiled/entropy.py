"""Cross-entropy of rows of logits x, of which number w is wanted, compiled; a step of autograd.

    l = log Σ_i exp(x_i),   nats = l − x_w,   ∂x_i = ∂nats·(exp(x_i − l) − [i = w])

Only l is kept, and the way back is one pass. torch's own writes the logarithms of all weights,
then an array of zeros with a number a row, and goes over both.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.blocks import LOWEST
from headwise.core.compiled.heads import flat
from headwise.core.compiled.host import LANES, compiling, entry, inner
from headwise.core.compiled.packs import Memory
from headwise.core.compiled.simd import add, exp, load, maximum, mul, splat, store, sub, total


def cross_entropy(
    logits: Float[Tensor, "*rows size"], wanted: Int[Tensor, "*rows"]
) -> Float[Tensor, "*rows"]:
    """Nats of every row; an IndexError where a wanted number is none of the row's."""
    nats: Tensor = _CrossEntropy.apply(logits, wanted)
    return nats


class _CrossEntropy(torch.autograd.Function):
    """(x, w) → nats."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        """The nats."""
        logits, wanted = logits.contiguous(), wanted.contiguous()
        nats, size = logits.new_empty(wanted.shape), logits.shape[-1]
        logs, numbers = np.empty(wanted.numel(), np.float32), wanted.view(-1).numpy()
        if not entropy_forward(flat(logits), numbers, flat(nats), logs, size):
            raise IndexError(f"a wanted number is none of 0, …, {size - 1}")
        ctx.save_for_backward(logits, wanted)
        ctx.logs = logs
        return nats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        """The gradient of the logits."""
        logits, wanted = ctx.saved_tensors
        found, numbers = torch.empty_like(logits), wanted.view(-1).numpy()
        given = flat(logits), numbers, ctx.logs, flat(slope)
        entropy_backward(*given, flat(found), logits.shape[-1])
        return found, None


@inner
def take_rest(rest: Memory, source: Memory, start: int, stop: int) -> None:
    """Numbers that fill no vector, and beside them such whose exponential is zero."""
    store(rest, 0, splat(LOWEST))
    for i in range(start, stop):
        rest[i - start] = source[i]


@entry
def entropy_forward(logits: Memory, wanted: Any, nats: Memory, logs: Memory, size: int) -> bool:
    """Is every wanted number one of a row's? Then nats and l of every row are written."""
    rest, whole = np.empty(LANES, np.float32), size - size % LANES
    for row in range(len(wanted)):
        if not 0 <= wanted[row] < size:
            return False
        at = row * size
        take_rest(rest, logits, at + whole, at + size)
        tops = load(rest, 0)
        for i in range(at, at + whole, LANES):
            tops = maximum(tops, load(logits, i))
        store(rest, 0, tops)
        top = rest[0]
        for lane in range(1, LANES):
            top = max(top, rest[lane])
        take_rest(rest, logits, at + whole, at + size)
        middle = splat(top)
        sums = exp(sub(load(rest, 0), middle))
        for i in range(at, at + whole, LANES):
            sums = add(sums, exp(sub(load(logits, i), middle)))
        logs[row] = top + np.log(total(sums))
        nats[row] = logs[row] - logits[at + wanted[row]]
    return True


@entry
def entropy_backward(
    logits: Memory, wanted: Any, logs: Memory, slopes: Memory, found: Memory, size: int
) -> None:
    """The gradients of the logits."""
    rest, whole = np.empty(LANES, np.float32), size - size % LANES
    for row in range(len(wanted)):
        at, log, slope = row * size, splat(logs[row]), splat(slopes[row])
        for i in range(at, at + whole, LANES):
            store(found, i, mul(exp(sub(load(logits, i), log)), slope))
        take_rest(rest, logits, at + whole, at + size)
        store(rest, 0, mul(exp(sub(load(rest, 0), log)), slope))
        for i in range(whole, size):
            found[at + i] = rest[i - whole]
        found[at + wanted[row]] -= slopes[row]


def try_out() -> None:
    """Compile, or load what was compiled before, and go forwards and backwards once."""
    logits = torch.zeros(1, 2, requires_grad=True)
    with compiling():
        cross_entropy(logits, torch.zeros(1, dtype=torch.int64)).sum().backward()
