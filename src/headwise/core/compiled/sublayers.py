"""Sub-layers as one step of autograd each: norm, residual connection, and what is between.

    norm last:    y = norm(x + inner(x)),      norm first:   y = x + inner(norm(x))

`inner` is attention, out·heads(qkv·x), or a feed-forward network, down·f(up·x) with f ReLU or GELU.
At widths of a few dozen an operation of torch costs more than its sums do, and autograd as much
again: written out, a sub-layer is a dozen operations forwards and backwards. Every product is a
member's own.
"""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.blocks import HeadSizes
from headwise.core.compiled.heads import attended, attended_back, flat
from headwise.core.compiled.host import compiling
from headwise.core.compiled.normed import NormKind, normed, normed_back
from headwise.core.compiled.rows import gelu_forward, relu_backward

Activation = Literal["relu", "gelu"]


class SubLayer(NamedTuple):
    """What a sub-layer is; `heads` is None for a feed-forward network."""

    norm: NormKind
    norm_first: bool
    activation: Activation
    heads: HeadSizes | None
    modules: int


def sub_layer(
    stream: Float[Tensor, "members batch length width"],
    into: tuple[Tensor, Tensor | None],
    out: tuple[Tensor, Tensor | None],
    norm: tuple[NormKind, Tensor, Tensor | None],
    *,
    norm_first: bool,
    activation: Activation = "relu",
    heads: tuple[int, int, int] | None = None,
    keys: int = 0,
    causal: bool = False,
    modules: int = 1,
    turns: Float[Tensor, "2 length half"] | None = None,
    gains: Float[Tensor, "2 members heads rank"] | None = None,
) -> Float[Tensor, "members batch length width"]:
    """The stream after it. `into` and `out` are weights and biases of maps; `norm` its gain, shift.

    `heads`: how many there are, and the sizes of their keys and values; None for a feed-forward
    network. The first `keys` tokens are keys. Heads give the mean over so many `modules`. `turns`:
    cosines and sines of rotary positions; `gains`: of the RMS norms of queries and keys. An RMS
    norm comes first, and its vectors are whole ones.
    """
    members, batch, length, _ = stream.shape
    sizes = None
    if heads is not None:
        flags = int(causal), int(turns is not None), int(gains is not None)
        sizes = HeadSizes(members * batch, batch, length, keys, *heads, *flags)
    kind = SubLayer(norm[0], norm_first, activation, sizes, modules)
    found: Tensor = _SubLayer.apply(stream, *into, *out, *norm[1:], gains, turns, kind)
    return found


class _SubLayer(torch.autograd.Function):
    """(x, maps, norm, gains of heads) → y."""

    @staticmethod
    def forward(
        ctx: Any, stream: Tensor, into: Tensor, into_bias: Tensor | None, out: Tensor,
        out_bias: Tensor | None, gain: Tensor, shift: Tensor | None, gains: Tensor | None,
        turns: Tensor | None, kind: SubLayer,
    ) -> Tensor:  # fmt: skip
        """The stream after the sub-layer."""
        rows = stream.contiguous().flatten(1, 2)
        read, scales, kept = rows, None, None
        if kind.norm_first:
            read, scales = normed(kind.norm, rows, gain, shift)
        if into_bias is None:
            hidden = torch.bmm(read, into.mT)
        else:
            hidden = torch.baddbmm(into_bias[:, None], read, into.mT)
        if kind.heads is None:
            mixed, hidden = _activated(hidden, kind.activation)
        else:
            mixed, kept = attended(hidden, gains, turns, kind.heads)
            mixed = mixed.div_(kind.modules) if kind.modules > 1 else mixed
        summed = torch.baddbmm(rows, mixed, out.mT)
        if kind.norm_first:
            before = rows
            found = summed if out_bias is None else summed.add_(out_bias[:, None])
        else:
            before = summed
            found, scales = normed(kind.norm, summed, gain, shift, out_bias)
        ctx.save_for_backward(read, hidden, mixed, before, into, out, gain, gains, turns)
        ctx.kept, ctx.scales, ctx.kind, ctx.shape = kept, scales, kind, stream.shape
        ctx.biased = into_bias is not None, out_bias is not None
        return found.view(stream.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the stream, the maps, the norm and the gains."""
        read, hidden, mixed, before, into, out, gain, gains, turns = ctx.saved_tensors
        kind: SubLayer = ctx.kind
        slope = slope.contiguous().view(before.shape)
        at, into_bias, out_bias, gain_slopes = slope, None, None, None
        if not kind.norm_first:
            of_norm = normed_back(kind.norm, before, gain, ctx.scales, slope)
            at, out_bias = of_norm.rows, of_norm.bias
        elif ctx.biased[1]:
            out_bias = slope.sum(1)
        out_slope, moved = torch.bmm(at.mT, mixed), torch.bmm(at, out)
        if kind.heads is None:
            moved = _activated_back(hidden, moved, kind.activation)
        else:
            moved = moved.div_(kind.modules) if kind.modules > 1 else moved
            moved, gain_slopes = attended_back(hidden, gains, turns, moved, ctx.kept, kind.heads)
        into_slope = torch.bmm(moved.mT, read)
        if ctx.biased[0]:
            into_bias = moved.sum(1)
        found = None
        if kind.norm_first:
            of_norm = normed_back(kind.norm, before, gain, ctx.scales, torch.bmm(moved, into))
            found = of_norm.rows.add_(slope).view(ctx.shape)
        elif ctx.needs_input_grad[0]:
            found = torch.baddbmm(at, moved, into).view(ctx.shape)
        maps = into_slope, into_bias, out_slope, out_bias
        return found, *maps, of_norm.gain, of_norm.shift, gain_slopes, None, None


def _activated(hidden: Tensor, activation: Activation) -> tuple[Tensor, Tensor]:
    """The values, in place, and what the way back needs: ReLU's values, GELU's slopes."""
    if activation == "relu":
        return hidden.relu_(), hidden
    slopes = torch.empty_like(hidden)
    gelu_forward(flat(hidden), flat(hidden), flat(slopes))
    return hidden, slopes


def _activated_back(kept: Tensor, slope: Tensor, activation: Activation) -> Tensor:
    """The gradient of what was activated, in place of that of the values."""
    if activation == "gelu":
        return slope.mul_(kept)
    relu_backward(flat(kept), flat(slope))
    return slope


def try_out() -> None:
    """Compile, or load what was compiled before, and go forwards and backwards once."""
    stream, maps = torch.ones(1, 1, 1, 2, requires_grad=True), torch.ones(1, 2, 2)
    bias, gain = torch.ones(1, 2), torch.ones(1, 2)
    with compiling():
        for norm in (("layer", gain, bias), ("length", gain[:, :1], None)):
            found = sub_layer(stream, (maps, bias), (maps, bias), norm, norm_first=False)
            found.sum().backward()
