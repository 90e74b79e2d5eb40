"""The attention module that replaces a transformers one: heads of any sizes, its own small cache.

It takes and returns what the family's own module does (hidden states in, output and attention
weights out) and computes through transformers' attention functions, so that `generate`, caches,
masks, half precision, `torch.compile` and the attention implementation setting keep working.
"""

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.pretrained.adapters.base import AttentionSite
from headwise.pretrained.plan.shapes import Bucket, LayerLayout, LayerShape, buckets, pad_columns


class HeadBucket(nn.Module):
    """Heads of one shape. Holds what transformers' attention functions ask of a module."""

    rotary_columns: Tensor | None
    context_columns: Tensor | None

    def __init__(self, bucket: Bucket, shape: LayerShape, site: AttentionSite) -> None:
        super().__init__()
        self.count = len(bucket.members)
        self.num_key_value_groups = bucket.queries
        self.qk_dim = bucket.qk_dim
        self.v_dim = bucket.v_dim
        self.is_causal = site.causal
        self.layer_idx = site.layer_index
        # Which real column each padded one holds, where heads are padded to one size.
        groups = [shape.groups[index] for index in bucket.members]
        keys, values = [g.qk_dim for g in groups], [g.v_dim for g in groups]
        self._pad("query", [d for d in keys for _ in range(bucket.queries)], bucket.qk_dim)
        self._pad("key", keys, bucket.qk_dim)
        self._pad("value", values, bucket.v_dim)
        by_query = [dim for dim in values for _ in range(bucket.queries)]
        places = pad_columns(by_query, bucket.v_dim)
        real = [place for place, column in enumerate(places) if column < sum(by_query)]
        ragged = len(real) < len(places)
        self.register_buffer("context_columns", torch.tensor(real) if ragged else None)
        self.query_width = sum(keys) * bucket.queries
        self.key_width, self.value_width = sum(keys), sum(values)
        # Which of the original head's rotary coordinates each kept coordinate turns with.
        reduced = site.rotary and bucket.qk_dim < site.head_dim
        turned = torch.zeros(self.count, bucket.qk_dim, dtype=torch.long) if reduced else None
        self.register_buffer("rotary_columns", turned)

    def _pad(self, role: str, sizes: list[int], largest: int) -> None:
        columns = torch.tensor(pad_columns(sizes, largest)) if min(sizes) < largest else None
        self.register_buffer(f"{role}_columns", columns)

    def padded(
        self, role: str, flat: Float[Tensor, "b t width"], dim: int
    ) -> Float[Tensor, "b h t dim"]:
        """New tokens' columns split into heads, zeros where a head is smaller than the largest."""
        columns = self._buffers[f"{role}_columns"]
        if columns is not None:
            flat = nn.functional.pad(flat, (0, 1)).index_select(-1, columns)
        return self.split_heads(flat, dim)

    def split_heads(self, flat: Float[Tensor, "b t width"], dim: int) -> Float[Tensor, "b h t dim"]:
        """Columns split into heads of one size."""
        return torch.unflatten(flat, -1, (-1, dim)).transpose(1, 2)

    def of_one_size(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """Zeros after the shorter of keys and values: fused attention asks for equal sizes."""
        more = self.qk_dim - self.v_dim
        if more > 0:
            value = nn.functional.pad(value, (0, more))
        elif more < 0:
            query = nn.functional.pad(query, (0, -more))
            key = nn.functional.pad(key, (0, -more))
        return query, key, value

    def rotate(
        self, heads: Float[Tensor, "b h t dim"], cos: Tensor, sin: Tensor, repeat: int
    ) -> Float[Tensor, "b h t dim"]:
        """RoPE with each kept pair's own frequency; cos and sin are (b, 1, t, head_dim)."""
        columns: Int[Tensor, "h dim"] | None = self._buffers["rotary_columns"]
        if columns is not None:
            columns = columns.repeat_interleave(repeat, dim=0)
            cos = cos[:, 0][..., columns].transpose(1, 2)
            sin = sin[:, 0][..., columns].transpose(1, 2)
        first, second = heads.chunk(2, dim=-1)
        return heads * cos + torch.cat((-second, first), dim=-1) * sin


class CompressedAttention(nn.Module):
    """Attention whose heads may differ in size; see `LayerLayout` for what it needs to be built."""

    def __init__(self, site: AttentionSite, layout: LayerLayout, config: Any) -> None:
        super().__init__()
        self.config = config
        self.layer_idx = site.layer_index
        self.scaling = site.scaling
        self.sliding_window = site.sliding_window
        self.rotary = site.rotary
        self.attention_dropout = site.attention_dropout
        self.is_causal = site.causal
        self.buckets = nn.ModuleList(
            HeadBucket(bucket, layout.shape, site) for bucket in buckets(layout.shape)
        )
        heads = self.kinds = [b for b in self.buckets if isinstance(b, HeadBucket)]
        self.query_widths = [b.query_width for b in heads]
        self.key_widths = [b.key_width for b in heads]
        self.value_widths = [b.value_width for b in heads]

        shape, biases = layout.shape, layout.biases
        hidden, queries, keys = site.hidden, sum(self.query_widths), sum(self.key_widths)
        self.q_proj = projection(hidden, queries, "query" in biases, shape.query_rank)
        self.k_proj = projection(hidden, keys, "key" in biases, shape.key_rank)
        self.v_proj = nn.Linear(hidden, sum(self.value_widths), bias="value" in biases)
        self.o_proj = output_projection(site, layout) if site.output_inside else None
        self.output_dropout = site.output_dropout

    def forward(
        self,
        hidden_states: Float[Tensor, "b t hidden"],
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Output and attention weights (None where the implementation gives none)."""
        kinds = self.kinds
        queries = self._heads("query", self.q_proj(hidden_states), self.query_widths)
        keys = self._heads("key", self.k_proj(hidden_states), self.key_widths)
        values = self._heads("value", self.v_proj(hidden_states), self.value_widths)
        if self.rotary:
            assert position_embeddings is not None
            cos, sin = (angles.unsqueeze(1) for angles in position_embeddings)
            pairs = list(zip(kinds, queries, keys, strict=True))
            queries = [kind.rotate(q, cos, sin, kind.num_key_value_groups) for kind, q, _ in pairs]
            keys = [kind.rotate(k, cos, sin, 1) for kind, _, k in pairs]
        if past_key_values is not None:
            keys, values = self._cached(past_key_values, keys, values)

        attend = self._attention_function()
        if self.sliding_window is not None:
            kwargs["sliding_window"] = self.sliding_window
        results = [
            attend(
                kind,
                *kind.of_one_size(q, k, v),
                attention_mask,
                dropout=self.attention_dropout if self.training else 0.0,
                scaling=self.scaling,
                **kwargs,
            )
            for kind, q, k, v in zip(kinds, queries, keys, values, strict=True)
        ]
        contexts = [
            output[..., : kind.v_dim].flatten(2)
            for kind, (output, _) in zip(kinds, results, strict=True)
        ]
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts, dim=-1)
        real = kinds[0]._buffers["context_columns"]
        if real is not None:
            context = context.index_select(-1, real)
        weights = [w for _, w in results if w is not None]
        if self.o_proj is not None:
            context = self.o_proj(context)
            if self.training:
                context = nn.functional.dropout(context, self.output_dropout)
        return context, torch.cat(weights, dim=1) if len(weights) == len(results) else None

    def _heads(self, role: str, flat: Tensor, widths: list[int]) -> list[Tensor]:
        parts = (flat,) if len(widths) == 1 else torch.split(flat, widths, -1)
        return [
            kind.padded(role, part, kind.v_dim if role == "value" else kind.qk_dim)
            for kind, part in zip(self.kinds, parts, strict=True)
        ]

    def _cached(
        self, cache: Any, keys: list[Tensor], values: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """All heads side by side as one head of the cache, so that not a byte is padding."""
        cache = getattr(cache, "self_attention_cache", cache)  # of an encoder–decoder cache
        if len(keys) == 1:
            key, value = cache.update(keys[0], values[0], self.layer_idx)
            return [key], [value]
        key, value = cache.update(_side_by_side(keys), _side_by_side(values), self.layer_idx)
        key_parts = key.squeeze(1).split(self.key_widths, -1)
        value_parts = value.squeeze(1).split(self.value_widths, -1)
        kinds = self.kinds
        return (
            [b.split_heads(part, b.qk_dim) for b, part in zip(kinds, key_parts, strict=True)],
            [b.split_heads(part, b.v_dim) for b, part in zip(kinds, value_parts, strict=True)],
        )

    def _attention_function(self) -> Any:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        name = self.config._attn_implementation
        return ALL_ATTENTION_FUNCTIONS.get_interface(name, eager_attention)


def _side_by_side(heads: list[Float[Tensor, "b _ t _"]]) -> Float[Tensor, "b 1 t width"]:
    return torch.cat([part.transpose(1, 2).flatten(2) for part in heads], dim=-1).unsqueeze(1)


class Factored(nn.Sequential):
    """The product of two thin linear maps, without a module's overhead for each."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The two maps, one after the other."""
        thin, wide = cast("list[nn.Linear]", list(self._modules.values()))
        return nn.functional.linear(
            nn.functional.linear(inputs, thin.weight, None), wide.weight, wide.bias
        )


def projection(inputs: int, outputs: int, bias: bool, rank: int | None) -> nn.Module:
    """Dense, or the product of two thin factors."""
    if rank is None:
        return nn.Linear(inputs, outputs, bias=bias)
    return Factored(nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=bias))


def output_projection(site: AttentionSite, layout: LayerLayout) -> nn.Linear:
    """From the heads' contexts, side by side, to the hidden state."""
    width = sum(len(group.heads) * group.v_dim for group in layout.shape.groups)
    return nn.Linear(width, site.hidden, bias="output" in layout.biases)


def eager_attention(
    module: HeadBucket,
    query: Float[Tensor, "b h q dim"],
    key: Float[Tensor, "b g k dim"],
    value: Float[Tensor, "b g k v_dim"],
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Softmax attention written out; the implementation that also returns the weights."""
    key = key.repeat_interleave(module.num_key_value_groups, dim=1)
    value = value.repeat_interleave(module.num_key_value_groups, dim=1)
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights
