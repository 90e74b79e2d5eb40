"""Softmax attention written out: where the weights are asked for, and for one token on a CPU."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.mechanism import angles, capped
from headwise.pretrained.model.heads import HeadBucket
from headwise.pretrained.model.projections import order_of

_AT_ONCE = 8  # key heads in one product, most of which is by zeros


def attention_function(config: Any, options: dict[str, Any], query: Tensor, plain: bool) -> Any:
    """transformers' function by the configuration's name; `plain` is without bias, cap, dropout."""
    if options.get("output_attentions"):
        return eager_attention
    name = config._attn_implementation
    if plain and name == "sdpa" and query.shape[2] == 1 and query.device.type == "cpu":
        return one_query_attention
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    return ALL_ATTENTION_FUNCTIONS.get_interface(name, eager_attention)


def eager_attention(
    module: Any,
    query: Float[Tensor, "b h q dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """As transformers' own: takes masks of both kinds, and none where only causality hides."""
    key = key.repeat_interleave(module.num_key_value_groups, dim=1)
    value = value.repeat_interleave(module.num_key_value_groups, dim=1)
    scores = capped(query @ key.transpose(2, 3) * scaling, softcap)
    if position_bias is not None:
        scores = scores + position_bias
    causal = module.is_causal if is_causal is None else is_causal
    if attention_mask is None and query.shape[2] > 1 and causal:
        past = scores.shape[-1] - scores.shape[-2]
        attention_mask = torch.ones_like(scores[0, 0], dtype=torch.bool).tril(past)
    if attention_mask is not None:
        scores = _masked(scores, attention_mask)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights


def one_query_attention(
    module: Any,
    query: Float[Tensor, "b h 1 dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    attention_mask: Tensor | None,
    scaling: float,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """One token after many, where reading the cache is the cost: it is read once, as it is.

    torch's own asks for keys and values of one size, and under a mask for a copy of them for every
    query head.
    """
    batch, groups = key.shape[:2]  # flattened: matmul of four dimensions takes as long as the rest
    grouped = (query * scaling).reshape(batch * groups, -1, query.shape[-1])
    scores = torch.bmm(grouped, key.flatten(0, 1).transpose(1, 2))
    if attention_mask is not None:
        apart = torch.unflatten(scores, 0, (batch, groups))
        scores = _masked(apart, attention_mask).flatten(0, 1)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    context = torch.bmm(weights, value.flatten(0, 1))
    return context.reshape(batch, 1, query.shape[1], -1), None


class HeadsAtOnce:
    """One token through all of a layer's heads in a few calls, whatever their sizes.

    Heads of unequal sizes have their keys side by side in the cache, and so their values. A query
    with zeros where other heads' keys stand has the same scores with all of it; so one product
    gives those of all heads. Most of it is by zeros, but reading the cache is the cost, and it is
    read once, in order, and not copied head by head.
    """

    def __init__(self, site: AttentionSite, kinds: list[HeadBucket]) -> None:
        self._site, self._kinds = site, kinds
        self._widths = [sum(k.query_width for k in kinds), sum(k.key_width for k in kinds)]
        self._parts: list[_Part] = []
        self._turns: _Turns | None = None

    def forget(self) -> None:
        """Drop what was worked out from weights that are there no longer."""
        self._parts, self._turns = [], None

    def contexts(
        self,
        both: Tensor,
        made_by: tuple[nn.Module, ...],
        value: Tensor,
        rotation: Any,
        cache: Any,
        mask: Tensor | None,
    ) -> Float[Tensor, "b 1 contexts"]:
        """From a token's queries and keys, and its values, to what all heads give.

        Queries and keys are side by side, in the order of the projections that they are `made_by`.
        """
        if self._turns is None:
            with torch.inference_mode(False):  # they may be kept for a gradient later
                order = order_of(made_by, self._widths) if made_by else None
                self._turns = _Turns.of(self._kinds, self._site, order)
        if self._site.rotary:
            both = self._turns.turned(both, *angles(self._site, rotation))
        else:
            both = self._turns.ordered(both)
        query, key = both.split(self._widths, -1)
        kind, scaling = self._kinds[0], self._site.scaling
        if len(self._kinds) > 1:
            key, value = self._cached(cache, key.unsqueeze(1), value.unsqueeze(1))
            return self._attend(query.squeeze(1), key.squeeze(1), value.squeeze(1), mask)
        heads = kind.padded("key", key, kind.qk_dim), kind.padded("value", value, kind.v_dim)
        query = kind.padded("query", query, kind.qk_dim)
        context, _ = one_query_attention(kind, query, *self._cached(cache, *heads), mask, scaling)
        context, real = context.flatten(2), kind._buffers["context_columns"]
        return context if real is None else context.index_select(-1, real)

    def _cached(self, cache: Any, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if cache is None:
            return key, value
        cache = getattr(cache, "self_attention_cache", cache)  # of an encoder–decoder cache
        found: tuple[Tensor, Tensor] = cache.update(key, value, self._site.layer_index)
        return found

    def _attend(
        self,
        query: Float[Tensor, "b queries"],
        key: Float[Tensor, "b k keys"],
        value: Float[Tensor, "b k values"],
        mask: Tensor | None,
    ) -> Float[Tensor, "b 1 contexts"]:
        if not self._parts:
            with torch.inference_mode(False):
                self._parts = list(_in_parts(self._kinds, self._site.scaling))
        contexts = []
        for part in self._parts:
            spread = query.index_select(-1, part.spread) * part.scale.to(query.dtype)
            spread = spread.view(len(spread), part.rows, -1)
            scores = torch.bmm(spread, key[..., part.keys].transpose(1, 2))
            if mask is not None:
                scores = _masked(scores, mask.squeeze(1))
            weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
            met = torch.bmm(weights, value[..., part.values]).flatten(1)
            contexts.append(met.index_select(-1, part.own))
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts, -1)
        return context.unsqueeze(1)


class _Part(NamedTuple):
    """Heads of one product: where queries go, which columns they meet, which results are theirs.

    `scale` is the scores' own where a query meets its key, and zero elsewhere.
    """

    spread: Tensor
    scale: Tensor
    rows: int
    keys: slice
    values: slice
    own: Tensor


def at_once(attention: nn.Module, site: AttentionSite, kinds: list[HeadBucket]) -> HeadsAtOnce:
    """The heads of an attention, which work out anew in what order their columns are when other
    weights are loaded."""
    attention.register_load_state_dict_post_hook(_forget)
    return HeadsAtOnce(site, kinds)


def _forget(attention: Any, _: Any) -> None:
    attention.heads_at_once.forget()


def _in_parts(kinds: list[HeadBucket], scaling: float) -> Iterator[_Part]:
    sizes = [kind for kind in kinds for _ in range(kind.count)]
    queries = keys = values = 0
    for first in range(0, len(sizes), _AT_ONCE):
        some = sizes[first : first + _AT_ONCE]
        width, depth = sum(kind.qk_dim for kind in some), sum(kind.v_dim for kind in some)
        spread, own = list[int](), list[int]()
        key = value = 0
        for kind in some:
            for _ in range(kind.num_key_value_groups):
                row = [-1] * width
                row[key : key + kind.qk_dim] = range(queries, queries := queries + kind.qk_dim)
                at = len(spread) // width * depth + value
                own += range(at, at + kind.v_dim)
                spread += row
            key, value = key + kind.qk_dim, value + kind.v_dim
        columns = slice(keys, keys := keys + width), slice(values, values := values + depth)
        places = torch.tensor(spread)
        scale = torch.where(places < 0, 0.0, scaling)
        rows = len(spread) // width
        yield _Part(places.clamp(min=0), scale, rows, *columns, torch.tensor(own))


class _Turns(NamedTuple):
    """Of every column, queries' and then keys': where it is found, where its pair's other one is,
    with which frequency they turn, and the sign of the other's sine."""

    own: Tensor | None  # None: as they are
    partner: Tensor
    frequency: Tensor
    sign: Tensor

    @classmethod
    def of(cls, kinds: list[HeadBucket], site: AttentionSite, order: Tensor | None) -> "_Turns":
        """Made once; `order` is that of the columns."""
        partners, frequencies, signs = list[Tensor](), list[Tensor](), list[Tensor]()
        first = 0
        for role in ("query", "key") if site.rotary else ():
            for kind in kinds:
                size, half = kind.qk_dim, kind.qk_dim // 2
                for frequency in kind.turning(role, site.head_dim):
                    partners.append(first + torch.arange(size).roll(half))
                    frequencies.append(frequency)
                    signs.append(torch.ones(size).index_fill(0, torch.arange(half), -1.0))
                    first += size
        if not partners:
            nothing = torch.zeros(0, dtype=torch.long)
            return cls(order, nothing, nothing, nothing)
        partner = torch.cat(partners)
        found = partner if order is None else order[partner]
        return cls(order, found, torch.cat(frequencies), torch.cat(signs))

    def ordered(self, both: Tensor) -> Tensor:
        """The columns, each at its place."""
        return both if self.own is None else both.index_select(-1, self.own)

    def turned(self, both: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """RoPE: each coordinate turns with its pair's other one, at its own frequency."""
        cos = cos.index_select(-1, self.frequency)
        sin = sin.index_select(-1, self.frequency) * self.sign
        own, other = self.ordered(both), both.index_select(-1, self.partner)
        return torch.addcmul(own * cos, other, sin).to(both.dtype)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask
