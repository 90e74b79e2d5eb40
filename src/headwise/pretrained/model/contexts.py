"""What is kept of the heads' contexts, and what the output makes of it.

A head's kept part tells most of what was cut off of it; the other heads' kept parts tell more, and
since the output projection mixes all heads anyway, using that costs no parameter.
"""

import torch
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.moments import LayerMoments
from headwise.pretrained.plan.reductions import LayerReductions
from headwise.pretrained.plan.shapes import LayerShape, kept_order

_RIDGE = 3e-2  # of a kept context's variance
_ROUNDING = 1e-6  # of its second moment, which is stored as float32
_NOTHING = 1e-12  # of the largest second moment


def context_maps(
    site: AttentionSite, reductions: LayerReductions, shape: LayerShape
) -> tuple[Tensor, Tensor]:
    """All heads' contexts to what is kept of them, side by side, and back."""
    dim, moments = site.head_dim, reductions.moments
    kept = [(index, head) for index in kept_order(shape) for head in shape.groups[index].heads]
    parts = {
        head: value_map(reductions, index, shape.groups[index].v_dim, dim) for index, head in kept
    }
    width = sum(len(part) for part in parts.values())
    into = moments.context_mean.new_zeros(width, site.heads * dim)
    back = into.T.clone()
    first = 0
    for index, head in kept:
        columns = slice(head * dim, (head + 1) * dim)
        rows = slice(first, first := first + len(parts[head]))
        into[rows, columns] = parts[head]
        back[columns, rows] = _value_back(site, reductions, index, head, parts[head])
    return into, back + _of_others(moments, into, back)


def _of_others(moments: LayerMoments, into: Tensor, back: Tensor) -> Tensor:
    """What all kept contexts r = into·c tell of what each head's own left unexplained.

    That is the regression of (I − back·into)(c − μ) on r. Where nothing is unexplained it is zero.
    The ridge keeps a short text's coincidences out, and the rounding of sums where nothing varies.
    """
    if moments.all_context is None or len(into) == into.shape[1]:
        return torch.zeros_like(back)
    mean = moments.context_mean.flatten()
    covariance = moments.all_context - torch.outer(mean, mean)
    seen = into @ covariance
    inner = seen @ into.T
    size = (into @ moments.all_context * into).sum(1)
    ridge = _RIDGE * inner.diagonal().clamp(min=0) + _ROUNDING * size
    ridge += _NOTHING * size.max() + 1e-300  # a part without any context tells nothing of others
    found: Tensor = torch.linalg.solve(inner + torch.diag(ridge), seen - inner @ back.T).T
    return found


def value_map(reductions: LayerReductions, group: int, width: int, dim: int) -> Tensor:
    """A group's contexts, or values, to the `width` best of their dimensions."""
    if width == dim:
        return torch.eye(dim, dtype=torch.float64, device=reductions.values.into.device)
    return reductions.values.into[group, :width]


def _value_back(
    site: AttentionSite, reductions: LayerReductions, group: int, head: int, into: Tensor
) -> Tensor:
    """The map from reduced to full context that is best for this head, given the group's `into`.

    Minimising E‖c − L·into·c‖² in any metric over L is a regression: L = C intoᵀ (into C intoᵀ)⁻¹.
    With one head a group that is `values.back`.
    """
    width = into.shape[0]
    if width == site.head_dim:
        return into
    if site.group_size == 1:
        return reductions.values.back[group, :, :width]
    mean = reductions.moments.context_mean[head]
    covariance = reductions.moments.context[head] - torch.outer(mean, mean)
    inner = into @ covariance @ into.T
    ridge = inner.diagonal().mean() * 1e-7 + 1e-300 if width else 0.0
    inner = inner + ridge * torch.eye(width, dtype=inner.dtype, device=inner.device)
    back: Tensor = torch.linalg.solve(inner, into @ covariance).T
    return back
