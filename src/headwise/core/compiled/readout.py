"""The map from a stream to one number a token, with the norm before it, as one step of autograd.

    y = w·n + b,   n = norm(x) or x;      ∂n = ∂y w,   ∂w = Σ ∂y n,   ∂b = Σ ∂y

A matrix of one row is a vector, and how a library multiplies with that depends in the last bits on
what is computed beside it. Here a token's sum goes over its coordinates, and a member's over its
tokens, in one order, whoever is there beside: so members can be stacked.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.heads import flat
from headwise.core.compiled.host import LANES, compiling, entry
from headwise.core.compiled.normed import NormKind, normed, normed_back
from headwise.core.compiled.packs import ZERO, Memory, clear
from headwise.core.compiled.simd import add, fma, load, mul, splat, store, total

_TOGETHER = 32  # rows whose slopes of the weights are summed before they join the others'


@entry
def weigh(
    rows: Memory, weights: Memory, biases: Memory, out: Memory, size: int, share: int
) -> None:
    """Of every row of `size` numbers, `share` of them a member's, its sum by weight."""
    whole = size - size % LANES
    for row in range(len(out)):
        at, member = row * size, row // share
        of, sums = member * size, splat(ZERO)
        for i in range(0, whole, LANES):
            sums = fma(load(rows, at + i), load(weights, of + i), sums)
        found = total(sums)
        for i in range(whole, size):
            found += rows[at + i] * weights[of + i]
        out[row] = found + biases[member]


@entry
def weigh_backward(
    rows: Memory, weights: Memory, slopes: Memory, row_slopes: Memory, weight_slopes: Memory,
    bias_slopes: Memory, some: Memory, size: int, share: int,
) -> None:  # fmt: skip
    """Slopes of the weights and biases begin as zeros; `some` is a row of scratch."""
    whole = size - size % LANES
    for member in range(len(bias_slopes)):
        of, stop = member * size, (member + 1) * share
        for start in range(member * share, stop, _TOGETHER):
            clear(some, 0, size)
            summed = ZERO
            for row in range(start, min(start + _TOGETHER, stop)):
                at, slope = row * size, slopes[row]
                slopes_of_row = splat(slope)
                summed += slope
                for i in range(0, whole, LANES):
                    store(row_slopes, at + i, mul(load(weights, of + i), slopes_of_row))
                    store(some, i, fma(load(rows, at + i), slopes_of_row, load(some, i)))
                for i in range(whole, size):
                    row_slopes[at + i] = weights[of + i] * slope
                    some[i] += rows[at + i] * slope
            for i in range(0, whole, LANES):
                store(weight_slopes, of + i, add(load(weight_slopes, of + i), load(some, i)))
            for i in range(whole, size):
                weight_slopes[of + i] += some[i]
            bias_slopes[member] += summed


def read_one(
    stream: Float[Tensor, "members batch length width"],
    weight: Float[Tensor, "members 1 width"],
    bias: Float[Tensor, "members 1"],
    norm: tuple[NormKind, Tensor, Tensor | None] | None,
) -> Float[Tensor, "members batch length 1"]:
    """One number a token. `norm`: the gain and the shift of the norm that comes first, if any."""
    found: Tensor = _ReadOne.apply(stream, weight, bias, *(norm or (None, None, None)))
    return found


class _ReadOne(torch.autograd.Function):
    """(x, map, norm) → y."""

    @staticmethod
    def forward(
        ctx: Any, stream: Tensor, weight: Tensor, bias: Tensor, kind: NormKind | None,
        gain: Tensor | None, shift: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """The sums."""
        rows = stream.contiguous().flatten(1, 2)
        read, ctx.scales = rows, None
        if kind is not None:
            assert gain is not None
            read, ctx.scales = normed(kind, rows, gain, shift)
        found = stream.new_empty(*stream.shape[:3], 1)
        weigh(flat(read), flat(weight), flat(bias), flat(found), rows.shape[2], rows.shape[1])
        ctx.save_for_backward(rows, read, weight, bias, gain)
        ctx.kind, ctx.shape = kind, stream.shape
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the stream, the map and the norm."""
        rows, read, weight, bias, gain = ctx.saved_tensors
        size, share = read.shape[2], read.shape[1]
        moved, some = torch.empty_like(read), np.empty(-(-size // LANES) * LANES, np.float32)
        weight_slope = torch.zeros_like(weight, memory_format=torch.contiguous_format)
        bias_slope = torch.zeros_like(bias, memory_format=torch.contiguous_format)
        weigh_backward(
            flat(read), flat(weight), flat(slope), flat(moved), flat(weight_slope),
            flat(bias_slope), some, size, share,
        )  # fmt: skip
        if ctx.kind is None:
            return moved.view(ctx.shape), weight_slope, bias_slope, None, None, None
        of_norm = normed_back(ctx.kind, rows, gain, ctx.scales, moved)
        found = of_norm.rows.view(ctx.shape)
        return found, weight_slope, bias_slope, None, of_norm.gain, of_norm.shift


def try_out() -> None:
    """Compile, or load what was compiled before, and go forwards and backwards once."""
    stream, weight = torch.ones(1, 1, 1, 2, requires_grad=True), torch.ones(1, 1, 2)
    with compiling():
        read_one(stream, weight, torch.ones(1, 1), None).sum().backward()
