"""Norms of the rows of members, forwards and backwards, of whichever kind.

"layer" and "length" are those of `norms`, "rms" that of `rows`, whose size is a multiple of LANES.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.compiled.heads import flat
from headwise.core.compiled.host import LANES
from headwise.core.compiled.norms import layer_backward, length_backward, normal_forward
from headwise.core.compiled.rows import norm_backward, norm_forward

NormKind = Literal["layer", "length", "rms"]
Rows = Float[Tensor, "members rows size"]
Scales = tuple[np.ndarray, np.ndarray]
"""Of every row: its mean, unless that is zero by definition, and its inverse spread."""

_NONE = np.zeros(1, np.float32)


class NormSlopes(NamedTuple):
    """The gradients of rows, of a bias that was added to them, of the gain and of the shift."""

    rows: Tensor
    bias: Tensor | None
    gain: Tensor
    shift: Tensor | None


def normed(
    kind: NormKind, rows: Rows, gain: Tensor, shift: Tensor | None, bias: Tensor | None = None
) -> tuple[Rows, Scales]:
    """The normed rows; a bias is added to the rows in place (not if they are normed by RMS)."""
    found, count = torch.empty_like(rows), rows.shape[0] * rows.shape[1]
    inverses = np.empty(count, np.float32)
    if kind == "rms":
        norm_forward(flat(rows), flat(gain), flat(found), inverses, rows.shape[2])
        return found, (_NONE, inverses)
    means = np.empty(count, np.float32)
    given = flat(rows), flat(bias), flat(gain), flat(shift), flat(found), means, inverses
    normal_forward(*given, rows.shape[2], rows.shape[1], kind == "layer")
    return found, (means, inverses)


def normed_back(
    kind: NormKind, rows: Rows, gain: Tensor, scales: Scales, slope: Rows
) -> NormSlopes:
    """From the gradient of the normed rows."""
    members, share, size = rows.shape
    found, room = torch.empty_like(rows), -(-size // LANES) * LANES
    some, (means, inverses) = np.empty(3 * room, np.float32), scales
    given = flat(rows), flat(gain)
    if kind == "rms":
        gains = rows.new_zeros(members, size)
        norm_backward(*given, inverses, flat(slope), flat(found), flat(gains), some, size)
        return NormSlopes(found, None, gains, None)
    sums = rows.new_zeros(3, members, size)
    bias, gains, shifts = sums.unbind()
    if kind == "layer":
        by = flat(sums).reshape(3, -1)  # views of an array are made faster than of a tensor
        layer_backward(*given, means, inverses, flat(slope), flat(found), *by, some, size, share)
        return NormSlopes(found, bias, gains, shifts)
    gains = torch.empty_like(gain, memory_format=torch.contiguous_format)
    moved = flat(found), flat(bias), flat(gains)
    length_backward(*given, inverses, flat(slope), *moved, some, size, share)
    return NormSlopes(found, bias, gains, None)
