"""Softmax attention written out: where the weights are asked for, and for one token on a CPU."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.mechanism import angles, capped
from headwise.pretrained.model.heads import HeadBucket

_AT_ONCE = 8  # key heads in one product, most of which is by zeros


def attention_function(config: Any, options: dict[str, Any], query: Tensor, plain: bool) -> Any:
    """transformers' function by the configuration's name; `plain` is without bias, cap, dropout."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if options.get("output_attentions"):
        return eager_attention
    name = config._attn_implementation
    if plain and name == "sdpa" and query.shape[2] == 1 and query.device.type == "cpu":
        return one_query_attention
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
    grouped = torch.unflatten(query.squeeze(2), 1, (key.shape[1], -1))
    scores = grouped @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = _masked(scores, attention_mask)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    return (weights @ value).flatten(1, 2).unsqueeze(1), None


class HeadsAtOnce:
    """One token through heads of unequal sizes, in as many calls as if they were of one.

    Their keys stand side by side in the cache, and so do their values. A head's query with zeros
    where other heads' keys stand has the same scores with all of it; so one product gives those of
    all heads. Most of it is by zeros, but reading the cache is the cost, and it is read once, in
    order, and not copied head by head.
    """

    def __init__(self, site: AttentionSite, kinds: list[HeadBucket]) -> None:
        self._site, self._kinds = site, kinds
        self._parts: list[_Part] = []
        self._turns: tuple[Tensor, Tensor, Tensor] | None = None

    def contexts(
        self,
        query: Float[Tensor, "b 1 queries"],
        key: Float[Tensor, "b 1 keys"],
        value: Float[Tensor, "b 1 values"],
        rotation: Any,
        cache: Any,
        mask: Tensor | None,
    ) -> Float[Tensor, "b 1 contexts"]:
        """From the projections of a token to what all heads give, side by side."""
        if self._site.rotary:
            query, key = self._turned(query, key, *angles(self._site, rotation))
        if cache is not None:
            cache = getattr(cache, "self_attention_cache", cache)  # of an encoder–decoder cache
            key, value = cache.update(key.unsqueeze(1), value.unsqueeze(1), self._site.layer_index)
            key, value = key.squeeze(1), value.squeeze(1)
        return self._attend(query * self._site.scaling, key, value, mask)

    def _turned(
        self, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor]:
        """RoPE: each coordinate turns with its pair's other one, at its own frequency."""
        if self._turns is None:
            self._turns = _turns(self._kinds, cos.shape[-1])
        columns, partners, signs = self._turns
        both = torch.cat([query, key], -1)
        cos, sin = (table.index_select(-1, columns) for table in (cos, sin))
        both = (both * cos + both.index_select(-1, partners) * (sin * signs)).to(both.dtype)
        turned_query, turned_key = both.split([query.shape[-1], key.shape[-1]], -1)
        return turned_query, turned_key

    def _attend(
        self,
        query: Float[Tensor, "b 1 queries"],
        key: Float[Tensor, "b k keys"],
        value: Float[Tensor, "b k values"],
        mask: Tensor | None,
    ) -> Float[Tensor, "b 1 contexts"]:
        if not self._parts:
            self._parts = list(_in_parts(self._kinds))
        with_zero = nn.functional.pad(query.squeeze(1), (0, 1))
        contexts = []
        for part in self._parts:
            spread = torch.unflatten(with_zero.index_select(-1, part.spread), -1, (part.rows, -1))
            scores = spread @ key[..., part.keys].transpose(1, 2)
            if mask is not None:
                scores = _masked(scores, mask.squeeze(1))
            weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
            contexts.append((weights @ value[..., part.values]).flatten(1)[:, part.own])
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts, -1)
        return context.unsqueeze(1)


class _Part(NamedTuple):
    """Heads of one product: where queries go, which columns they meet, which results are theirs."""

    spread: Tensor
    rows: int
    keys: slice
    values: slice
    own: Tensor


def _in_parts(kinds: list[HeadBucket]) -> Iterator[_Part]:
    sizes = [kind for kind in kinds for _ in range(kind.count)]
    nothing = sum(kind.query_width for kind in kinds)  # the column after the last: a zero
    queries = keys = values = 0
    for first in range(0, len(sizes), _AT_ONCE):
        some = sizes[first : first + _AT_ONCE]
        width, depth = sum(kind.qk_dim for kind in some), sum(kind.v_dim for kind in some)
        spread, own, key, value = [], [], 0, 0
        for kind in some:
            for _ in range(kind.num_key_value_groups):
                row = [nothing] * width
                row[key : key + kind.qk_dim] = range(queries, queries := queries + kind.qk_dim)
                at = len(spread) // width * depth + value
                own += range(at, at + kind.v_dim)
                spread += row
            key, value = key + kind.qk_dim, value + kind.v_dim
        columns = slice(keys, keys := keys + width), slice(values, values := values + depth)
        yield _Part(torch.tensor(spread), len(spread) // width, *columns, torch.tensor(own))


def _turns(kinds: list[HeadBucket], head_dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """For every column, queries' and then keys': its frequency, its pair's other column, and the
    sign of that one's sine."""
    columns, partners, signs = list[Tensor](), list[Tensor](), list[Tensor]()
    first = 0
    for repeat in ("queries", "keys"):
        for kind in kinds:
            half = kind.qk_dim // 2
            turning = kind.rotary_columns
            for head in range(kind.count):
                own = torch.arange(head_dim) if turning is None else turning[head]
                for _ in range(kind.num_key_value_groups if repeat == "queries" else 1):
                    columns.append(own)
                    partners.append(first + torch.arange(kind.qk_dim).roll(half))
                    signs.append(torch.ones(kind.qk_dim).index_fill(0, torch.arange(half), -1.0))
                    first += kind.qk_dim
    joined = (torch.cat(each) for each in (columns, partners, signs))
    return tuple(joined)  # type: ignore[return-value]


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask
