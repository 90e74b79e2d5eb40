"""What lies between the projections and the attention weights, each mechanism once.

Measuring and the reduced module both go through here, so that they cannot disagree:
projection → `paired` → `normed` → RoPE (`angles`, `turned`) → scores → `capped` → bias → `hidden`.

Partial RoPE turns some coordinates and leaves the others, which is to turn them by angle zero. So
they are grouped into pairs as well (`paired`), with cosine 1 and sine 0 (`angles`), and everything
that is true of RoPE on whole heads is true of it: a pair may be dropped, or given a complex gain.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import (
    AttentionSite,
    AttentionWeights,
    LinearPart,
    Projection,
)


def pair_order(site: AttentionSite) -> list[int] | None:
    """A head's coordinates with pair i at i and i + head_dim / 2; None if they are so already."""
    dim, turned = site.head_dim, site.rotary_dim or site.head_dim
    if not site.rotary or (turned == dim and not site.neighbours):
        return None
    half, rest = turned // 2, (dim - turned) // 2
    pairs = [(2 * i, 2 * i + 1) if site.neighbours else (i, half + i) for i in range(half)]
    pairs += [(turned + i, turned + rest + i) for i in range(rest)]
    return [first for first, _ in pairs] + [second for _, second in pairs]


def paired(site: AttentionSite, flat: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
    """Query or key columns, heads side by side, in the order of pairs."""
    order = pair_order(site)
    if order is None:
        return flat
    return torch.unflatten(flat, -1, (-1, site.head_dim))[..., order].flatten(-2)


def normed(norm: nn.Module | None, whole_layer: bool, heads: Tensor) -> Tensor:
    """Queries or keys (b, heads, t, dim) of all heads after the layer's norm."""
    if norm is None:
        return heads
    if not whole_layer:
        return norm(heads.transpose(1, 2)).transpose(1, 2)
    flat = norm(heads.transpose(1, 2).flatten(2))
    return torch.unflatten(flat, -1, (heads.shape[1], -1)).transpose(1, 2)


def angles(
    site: AttentionSite, position_embeddings: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Cosine and sine (b, t, dim) of every coordinate of a head, in the order of pairs."""
    cos, sin = position_embeddings
    if site.neighbour_angles:
        cos, sin = (torch.cat([table[..., ::2], table[..., 1::2]], -1) for table in (cos, sin))
    rest = (site.head_dim - cos.shape[-1]) // 2
    if rest == 0:
        return cos, sin
    one, zero = (torch.full_like(cos[..., :1], v).expand(*cos.shape[:-1], rest) for v in (1.0, 0.0))
    (cos_first, cos_second), (sin_first, sin_second) = cos.chunk(2, -1), sin.chunk(2, -1)
    return (
        torch.cat([cos_first, one, cos_second, one], -1),
        torch.cat([sin_first, zero, sin_second, zero], -1),
    )


def turned(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE: coordinate i and i + size / 2 turn together; in the precision that the heads have
    (OLMo 2 gives cosines in single precision whatever the model has).

    Of many tokens the cost is to go through memory, so the two halves are added in place."""
    half, result = heads.shape[-1] // 2, heads * cos
    first, second = heads.to(result.dtype).chunk(2, dim=-1)
    result[..., :half].addcmul_(second, sin[..., :half], value=-1)
    result[..., half:].addcmul_(first, sin[..., half:])
    return result.to(heads.dtype)


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """Soft-capping: scores stay within ±cap."""
    return scores if cap is None else torch.tanh(scores / cap) * cap


def hidden(
    site: AttentionSite, queries: int, keys: int, device: torch.device
) -> Bool[Tensor, "queries keys"] | None:
    """Which keys a query may not see, in a sequence without padding."""
    window = site.sliding_window
    if site.cross or (window is None and not site.causal):
        return None
    distance = torch.arange(queries, device=device)[:, None] - torch.arange(keys, device=device)
    out = distance < 0 if site.causal else torch.zeros_like(distance, dtype=torch.bool)
    return out if window is None else out | (distance.abs() >= window)


def beyond_window(
    site: AttentionSite, query: Tensor, key: Tensor, mask: Tensor | None
) -> Float[Tensor, "... queries keys"]:
    """The mask of a causal layer with what is beyond its window hidden as well."""
    queries, keys = query.shape[2], key.shape[2]
    lowest = torch.finfo(query.dtype).min
    unseen = hidden(site, keys, keys, query.device)
    assert unseen is not None
    unseen = unseen[keys - queries :]  # the last of the keys are the queries' own
    if mask is None:
        return torch.zeros_like(unseen, dtype=query.dtype).masked_fill(unseen, lowest)
    if mask.dtype == torch.bool:
        return mask & ~unseen
    return mask.masked_fill(unseen, lowest)


def read_weights(model: nn.Module, site: AttentionSite) -> AttentionWeights:
    """The layer's projections as float32 copies."""

    def project(projection: Projection, turns: bool) -> LinearPart:
        full = _affine(model.get_submodule(projection.path))

        def rows(part: Tensor) -> Tensor:
            chosen = projection.columns(part)
            return (paired(site, chosen) if turns else chosen).clone()

        weight = rows(full.weight.T).T.contiguous()
        return LinearPart(weight, None if full.bias is None else rows(full.bias))

    return AttentionWeights(
        project(site.query, True),
        project(site.key, True),
        project(site.value, False),
        _affine(model.get_submodule(site.output)),
    )


def _affine(module: Any) -> LinearPart:
    transposed = type(module).__name__ == "Conv1D"  # GPT-2's
    plain = isinstance(module, nn.Linear) or transposed
    require(
        plain and isinstance(module.weight, Tensor) and module.weight.is_floating_point(),
        f"a projection is a {type(module).__name__}, and headwise reduces plain linear maps: merge "
        "adapters (LoRA) into the model and dequantise it first",
    )
    weight = module.weight.detach().float()
    if transposed:
        weight = weight.T
    bias = None if module.bias is None else module.bias.detach().float().clone()
    return LinearPart(weight.clone(memory_format=torch.contiguous_format), bias)
