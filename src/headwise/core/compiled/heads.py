"""Softmax attention, forwards and backwards, compiled; alone it is one step of autograd."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.core.compiled.attention import backward, forward, padded_queries, scratch_floats
from headwise.core.compiled.blocks import HeadSizes
from headwise.core.compiled.host import LANES, compiling

_NONE = np.zeros(1, np.float32)


def read_heads(
    rows: Float[Tensor, "members batch length qkv"],
    *,
    heads: int,
    qk_dim: int,
    v_dim: int,
    keys: int,
    causal: bool = False,
    turns: Float[Tensor, "2 length half"] | None = None,
    gains: Float[Tensor, "2 members heads rank"] | None = None,
) -> Float[Tensor, "members batch length values"]:
    """What heads read, side by side, from queries, keys and values side by side.

    The first `keys` tokens are keys. `turns`: cosines and sines of rotary positions; `gains`: of
    the RMS norms of queries and keys.
    """
    members, batch, length, _ = rows.shape
    flags = int(causal), int(turns is not None), int(gains is not None)
    sizes = HeadSizes(members * batch, batch, length, keys, heads, qk_dim, v_dim, *flags)
    mixed: Tensor = _ReadHeads.apply(rows, gains, turns, sizes)
    return mixed


class _ReadHeads(torch.autograd.Function):
    """(rows, gains) → what heads read."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, gains: Tensor | None, turns: Tensor | None, sizes: HeadSizes
    ) -> Tensor:
        """Attention."""
        rows = rows.contiguous()
        mixed, ctx.kept = attended(rows, gains, turns, sizes)
        ctx.save_for_backward(rows, gains, turns)
        ctx.sizes = sizes
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the rows and of the gains."""
        rows, gains, turns = ctx.saved_tensors
        return *attended_back(rows, gains, turns, slope, ctx.kept, ctx.sizes), None, None


def attended(
    rows: Float[Tensor, "*tokens qkv"],
    gains: Float[Tensor, "2 members heads rank"] | None,
    turns: Float[Tensor, "2 length half"] | None,
    sizes: HeadSizes,
) -> tuple[Float[Tensor, "*tokens values"], np.ndarray]:
    """What heads read, and what the way back needs of it."""
    mixed = rows.new_empty(*rows.shape[:-1], sizes.heads * sizes.v_dim)
    packs = -(-sizes.sequences * sizes.heads // LANES)
    kept = np.empty(packs * padded_queries(sizes) * 2 * LANES, np.float32)
    forward(flat(rows), flat(turns), flat(gains), flat(mixed), kept, _scratch(sizes), sizes)
    return mixed, kept


def attended_back(
    rows: Float[Tensor, "*tokens qkv"],
    gains: Float[Tensor, "2 members heads rank"] | None,
    turns: Float[Tensor, "2 length half"] | None,
    slope: Float[Tensor, "*tokens values"],
    kept: np.ndarray,
    sizes: HeadSizes,
) -> tuple[Tensor, Tensor | None]:
    """The gradients of the rows and of the gains, from that of what heads read."""
    whole = sizes.keys == sizes.length  # otherwise some keys and values have no gradient
    row_slopes = torch.empty_like(rows) if whole else torch.zeros_like(rows)
    gain_slopes = None if gains is None else torch.zeros_like(gains)
    given = flat(rows), flat(turns), flat(gains), flat(slope), kept
    backward(*given, _scratch(sizes), flat(row_slopes), flat(gain_slopes), sizes)
    return row_slopes, gain_slopes


def flat(tensor: Tensor | None) -> np.ndarray:
    """A tensor's numbers as compiled code takes them, in its memory unless they lie scattered."""
    if tensor is None:
        return _NONE
    own = tensor.detach() if tensor.requires_grad else tensor
    return own.contiguous().numpy().reshape(-1)


def _scratch(sizes: HeadSizes) -> np.ndarray:
    return np.empty(scratch_floats(sizes), np.float32)


def try_out() -> None:
    """Compile, or load what was compiled before, and read once, forwards and backwards."""
    rows = torch.ones(1, 1, 2, 5, requires_grad=True)
    with compiling():
        read_heads(rows, heads=1, qk_dim=2, v_dim=1, keys=2).sum().backward()
