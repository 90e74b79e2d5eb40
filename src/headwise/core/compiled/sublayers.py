"""Encoder sub-layers as one step of autograd each: norm, residual connection, and what is between.

    norm last:    y = norm(x + inner(x)),      norm first:   y = x + inner(norm(x))

`inner` is attention, out·heads(qkv·x), or a feed-forward network, down·relu(up·x). At widths of a
few dozen an operation of torch costs more than its sums do, and autograd as much again: written
out, a sub-layer is a dozen operations forwards and backwards. Every product is a member's own.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.attention import backward, forward, padded_queries, scratch_floats
from headwise.core.compiled.blocks import HeadSizes
from headwise.core.compiled.host import LANES, compiling
from headwise.core.compiled.norms import layer_backward, length_backward, normal_forward

_NONE = np.zeros(1, np.float32)


class SubLayer(NamedTuple):
    """What a sub-layer is; `heads` is None for a feed-forward network. `centred`: a layer norm."""

    heads: HeadSizes | None
    modules: int
    centred: bool
    norm_first: bool


def sub_layer(
    stream: Float[Tensor, "members batch length width"],
    into: tuple[Tensor, Tensor],
    out: tuple[Tensor, Tensor],
    norm: tuple[Tensor, Tensor | None],
    *,
    norm_first: bool,
    heads: tuple[int, int, int] | None = None,
    keys: int = 0,
    causal: bool = False,
    modules: int = 1,
) -> Float[Tensor, "members batch length width"]:
    """The stream after it. `into` and `out` are weights and biases of maps.

    `norm` is gain and shift of a layer norm, or the one gain of a length. `heads`: how many there
    are, and the sizes of their keys and values; None for a feed-forward network. The first `keys`
    tokens are keys. Heads give the mean over so many `modules`.
    """
    members, batch, length, _ = stream.shape
    sizes = None
    if heads is not None:
        sizes = HeadSizes(members * batch, batch, length, keys, *heads, int(causal), 0, 0)
    kind = SubLayer(sizes, modules, norm[1] is not None, norm_first)
    found: Tensor = _SubLayer.apply(stream, *into, *out, *norm, kind)
    return found


class _SubLayer(torch.autograd.Function):
    """(x, maps, norm) → y."""

    @staticmethod
    def forward(
        ctx: Any, stream: Tensor, into: Tensor, into_bias: Tensor, out: Tensor, out_bias: Tensor,
        gain: Tensor, shift: Tensor | None, kind: SubLayer,
    ) -> Tensor:  # fmt: skip
        """The stream after the sub-layer."""
        rows = stream.contiguous().flatten(1, 2)
        read, scales = rows, None
        if kind.norm_first:
            read, scales = _norm(rows, None, gain, shift, kind)
        hidden = torch.baddbmm(into_bias[:, None], read, into.mT)
        mixed, kept = (hidden.relu_(), _NONE) if kind.heads is None else _read(hidden, kind)
        summed = torch.baddbmm(rows, mixed, out.mT)
        if kind.norm_first:
            found, normed = summed.add_(out_bias[:, None]), rows
        else:
            found, scales = _norm(summed, out_bias, gain, shift, kind)
            normed = summed
        ctx.save_for_backward(read, hidden, mixed, normed, into, out, gain)
        ctx.kept, ctx.scales, ctx.kind, ctx.shape = kept, scales, kind, stream.shape
        return found.view(stream.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the stream, the maps and the norm."""
        read, hidden, mixed, normed, into, out, gain = ctx.saved_tensors
        kind: SubLayer = ctx.kind
        slope = slope.contiguous().view(normed.shape)
        at = slope
        if kind.norm_first:
            out_bias = slope.sum(1)
        else:
            at, out_bias, gain_slope, shift = _norm_back(normed, gain, ctx.scales, slope, kind)
        out_slope, mixed_slope = torch.bmm(at.mT, mixed), torch.bmm(at, out)
        if kind.heads is None:
            hidden_slope = torch.ops.aten.threshold_backward(mixed_slope, mixed, 0)
        else:
            hidden_slope = _read_back(hidden, mixed_slope, ctx.kept, kind)
        into_slope, into_bias = torch.bmm(hidden_slope.mT, read), hidden_slope.sum(1)
        stream_slope = None
        if kind.norm_first:
            of_read = torch.bmm(hidden_slope, into)
            moved, _, gain_slope, shift = _norm_back(normed, gain, ctx.scales, of_read, kind)
            stream_slope = moved.add_(slope).view(ctx.shape)
        elif ctx.needs_input_grad[0]:
            stream_slope = torch.baddbmm(at, hidden_slope, into).view(ctx.shape)
        maps = into_slope, into_bias, out_slope, out_bias
        return stream_slope, *maps, gain_slope, shift if kind.centred else None, None


def _norm(
    rows: Tensor, bias: Tensor | None, gain: Tensor, shift: Tensor | None, kind: SubLayer
) -> tuple[Tensor, tuple[np.ndarray, np.ndarray]]:
    """The normed rows, their means and inverse spreads; a bias is added to the rows in place."""
    found, count = torch.empty_like(rows), rows.shape[0] * rows.shape[1]
    means, inverses = np.empty(count, np.float32), np.empty(count, np.float32)
    given = _flat(rows), _flat(bias), _flat(gain), _flat(shift), _flat(found), means, inverses
    normal_forward(*given, rows.shape[2], rows.shape[1], kind.centred)
    return found, (means, inverses)


def _norm_back(
    rows: Tensor, gain: Tensor, scales: tuple[np.ndarray, np.ndarray], slope: Tensor, kind: SubLayer
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of the rows, of a bias added to them, of the gain and of the shift."""
    members, share, size = rows.shape
    found, room = torch.empty_like(rows), -(-size // LANES) * LANES
    bias, gains, shifts = rows.new_zeros(3, members, size)
    some, (means, inverses) = np.empty(3 * room, np.float32), scales
    if kind.centred:
        moved = _flat(bias), _flat(gains), _flat(shifts)
        given = _flat(rows), _flat(gain), means, inverses, _flat(slope)
        layer_backward(*given, _flat(found), *moved, some, size, share)
    else:
        gains = torch.empty_like(gain, memory_format=torch.contiguous_format)
        moved = _flat(found), _flat(bias), _flat(gains)
        length_backward(_flat(rows), _flat(gain), inverses, _flat(slope), *moved, some, size, share)
    return found, bias, gains, shifts


def _read(rows: Tensor, kind: SubLayer) -> tuple[Tensor, np.ndarray]:
    """What heads read, the mean over modules, and what the way back needs."""
    sizes = kind.heads
    assert sizes is not None
    found = rows.new_empty(*rows.shape[:2], sizes.heads * sizes.v_dim)
    packs = -(-sizes.sequences * sizes.heads // LANES)
    kept = np.empty(packs * padded_queries(sizes) * 2 * LANES, np.float32)
    forward(_flat(rows), _NONE, _NONE, _flat(found), kept, _scratch(sizes), sizes)
    return (found.div_(kind.modules) if kind.modules > 1 else found), kept


def _read_back(rows: Tensor, slope: Tensor, kept: np.ndarray, kind: SubLayer) -> Tensor:
    """The gradient of queries, keys and values side by side."""
    sizes = kind.heads
    assert sizes is not None
    slope = slope.div_(kind.modules) if kind.modules > 1 else slope
    whole = sizes.keys == sizes.length  # otherwise some keys and values have no gradient
    found = torch.empty_like(rows) if whole else torch.zeros_like(rows)
    given = _flat(rows), _NONE, _NONE, _flat(slope), kept
    backward(*given, _scratch(sizes), _flat(found), _NONE, sizes)
    return found


def _flat(tensor: Tensor | None) -> np.ndarray:
    return _NONE if tensor is None else tensor.detach().contiguous().view(-1).numpy()


def _scratch(sizes: HeadSizes) -> np.ndarray:
    return np.empty(scratch_floats(sizes), np.float32)


def try_out() -> None:
    """Compile, or load what was compiled before, and go forwards and backwards once."""
    stream, maps = torch.ones(1, 1, 1, 2, requires_grad=True), torch.ones(1, 2, 2)
    bias, gain = torch.ones(1, 2), torch.ones(1, 2)
    with compiling():
        for shift in (bias, None):
            norm = gain if shift is not None else gain[:, :1], shift
            found = sub_layer(stream, (maps, bias), (maps, bias), norm, norm_first=False)
            found.sum().backward()
