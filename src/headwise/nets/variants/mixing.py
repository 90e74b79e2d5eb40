"""The full form of a variant: every token is a query, against every key it may see."""

from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.nets.layers import Params
from headwise.nets.variants._variant import Variant


def mix_heads(
    variant: Variant,
    params: Params,
    name: str,
    asking: Float[Tensor, "members batch asking width"],
    query: Float[Tensor, "members batch queries asking rank"],
    key: Float[Tensor, "members batch keymaps keys rank"],
    value: Float[Tensor, "members batch valuemaps keys size"],
    seen: Bool[Tensor, "#queries asking keys"] | None = None,
) -> Float[Tensor, "members batch heads asking size"]:
    """The heads' outputs. `asking` are the query tokens themselves; `query` is scaled already.

    `seen` says which keys each query may see (`sight`).
    """
    weights = variant.weigh(params, name, query, _shared_out(key, query.shape[2]), seen)
    weights = variant.combine(params, name, weights)
    outputs = weights @ _shared_out(value, weights.shape[2])
    return variant.gate(params, name, asking, outputs)


def sight(
    variant: Variant, queries: int, length: int, longest: int, device: torch.device
) -> Bool[Tensor, "#queries asking keys"]:
    """Which tokens of a sequence see which: themselves and those before, where a variant lets."""
    return _sight(variant, queries, length, longest, str(device))


@lru_cache(maxsize=64)
def _sight(variant: Variant, queries: int, length: int, longest: int, device: str) -> Tensor:
    place = torch.arange(length, device=device)
    distance = place[:, None] - place
    before = (distance >= 0).unsqueeze(0)
    seen = variant.visible(distance, longest, queries)
    return before if seen is None else seen & before


def from_behind(length: int, device: torch.device) -> Int[Tensor, "1 keys"]:
    """Distances of the tokens, and of itself, to a class token behind the last: T−1 … 0, −1."""
    return torch.arange(length - 1, -2, -1, device=device).unsqueeze(0)


def _shared_out(
    maps: Float[Tensor, "members batch maps keys size"], heads: int
) -> Float[Tensor, "members batch heads keys size"]:
    """Every head's own map, where several share one."""
    shares = heads // maps.shape[2]
    return maps if shares == 1 else maps.repeat_interleave(shares, 2)
