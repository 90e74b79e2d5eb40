"""The attention module that replaces a transformers one: heads of any sizes, its own small cache.

It takes and returns what the family's own module does (hidden states in, output and attention
weights out) and computes through transformers' attention functions (one token on a CPU apart), so
that `generate`, caches, masks, half precision, `torch.compile` and the attention implementation
setting keep working. It is also an instance of the family's class, because transformers finds what
to record by class.
"""

import inspect
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.calls import given_bias, made_bias, named, rotation
from headwise.pretrained.adapters.mechanism import angles, beyond_window, normed
from headwise.pretrained.model.heads import HeadBucket
from headwise.pretrained.model.projections import (
    columns_of,
    input_projections,
    output_projection,
    refuse_stock,
)
from headwise.pretrained.model.softmax import attention_function, one_query_attention
from headwise.pretrained.model.token.at_once import at_once
from headwise.pretrained.model.token.growing import appended
from headwise.pretrained.plan.shapes import LayerLayout, buckets

_OWN_ARGUMENTS = {"hidden_states", "attention_mask", "past_key_values", "position_embeddings"}
_OWN_ARGUMENTS |= {"key_value_states", "position_bias", "residual"}


class CompressedAttention(nn.Module):
    """Attention whose heads may differ in size; see `LayerLayout` for what it needs to be built."""

    def __init__(
        self, site: AttentionSite, layout: LayerLayout, original: Any, config: Any
    ) -> None:
        nn.Module.__init__(self)
        self._is_hf_initialized = True  # its parts initialise themselves, not as the family's do
        self.config = getattr(original, "config", config)
        self.site = site
        self.layer_idx = site.layer_index
        self.is_causal = site.causal
        self.argument_names = list(inspect.signature(original.forward).parameters)
        self.buckets = nn.ModuleList(
            HeadBucket(bucket, layout.shape, site) for bucket in buckets(layout.shape)
        )
        heads = self.kinds = [b for b in self.buckets if isinstance(b, HeadBucket)]
        self.query_widths = [b.query_width for b in heads]
        self.key_widths = [b.key_width for b in heads]
        self.value_widths = [b.value_width for b in heads]
        self._order_heads(layout)

        shape, biases = layout.shape, layout.biases
        hidden, queries, keys = site.hidden, sum(self.query_widths), sum(self.key_widths)
        self.whole_norm = site.norm is not None and site.norm.whole_layer
        if self.whole_norm:  # every head takes part in the norm, kept or not
            queries, keys = site.heads * site.head_dim, site.kv_heads * site.head_dim
        values, contexts = sum(self.value_widths), output_projection(site, layout)
        self.fused = shape.fused
        if self.fused:
            self.fused_widths = [queries + keys, values]
            self.qkv_proj = nn.Linear(hidden, queries + keys + values, bias="query" in biases)
        else:
            made = input_projections(site, layout, queries, keys, values)
            self.q_proj, self.k_proj, self.v_proj = made
        self.o_proj = contexts if site.output_inside else None
        self._keep_parts(site, original)
        # T5's first layer makes the biases of all: they are returned before the weights.
        hands_on = hasattr(self, "compute_bias") and "position_bias" in self.argument_names
        self.hands_bias_on = hands_on
        unusual = site.norm is not None or site.cross or site.position_bias or site.window_inside
        self.heads_at_once = None if unusual else at_once(self, site, heads)
        refuse_stock(self, site)

    def _order_heads(self, layout: LayerLayout) -> None:
        """Which original heads are computed, in order, and where each stands among them."""
        shape = layout.shape
        self.key_heads = [index for b in buckets(shape) for index in b.members]
        self.query_heads = [head for index in self.key_heads for head in shape.groups[index].heads]
        self.in_order = self.query_heads == sorted(self.query_heads)
        self.all_heads = self.query_heads == list(range(self.site.heads))

    def _keep_parts(self, site: AttentionSite, original: Any) -> None:
        """What of the original stays: norms, the table of distances' biases."""
        self.q_norm = original.q_norm if site.norm is not None else None
        self.k_norm = original.k_norm if site.norm is not None else None
        if hasattr(original, "compute_bias"):
            for name, value in vars(original).items():  # T5's compute_bias reads them
                if not name.startswith("_") and not hasattr(self, name):
                    setattr(self, name, value)
            table = original._modules.get("relative_attention_bias")
            if table is not None:
                self.relative_attention_bias = table

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
        """What the family's module returns: output and weights (None if not computed)."""
        given = named(self.argument_names, args, kwargs)
        turns, bias = rotation(self.site, given), given_bias(self.site, given)
        hidden_states: Tensor = given["hidden_states"]
        mask: Tensor | None = given.get("attention_mask")
        cache: Any = given.get("past_key_values")
        residual = given.get("residual")  # BLOOM's attention adds it itself
        options = {name: value for name, value in given.items() if name not in _OWN_ARGUMENTS}
        attend = attention_function(self.config, options, hidden_states, self._plain(mask))
        if self.heads_at_once is not None and attend is one_query_attention:
            made_by = () if self.fused else (self.q_proj, self.k_proj, self.v_proj)
            columns = columns_of(made_by or (self.qkv_proj,), hidden_states)
            contexts = self.heads_at_once.contexts(columns, made_by, turns, cache, mask)
            return self._output(contexts), None
        counted = cache is not None and self.site.position_bias
        past = cache.get_seq_length(self.layer_idx) if counted else 0
        source = given.get("key_value_states")
        queries, keys, values = self._projected(hidden_states, source, turns, cache)
        if self.site.position_bias and bias is None:
            bias = made_bias(self, self.site.heads, hidden_states, keys[0].shape[2], past)
        results = self._attend(attend, queries, keys, values, mask, bias, options)
        output = self._joined([output for output, _ in results])
        output = output if residual is None else output + residual
        weights = self._weights([w for _, w in results])
        if self.hands_bias_on:
            return output, bias, weights
        return output, weights

    def _plain(self, mask: Tensor | None) -> bool:
        """Nothing beside scores, and one mask for all heads."""
        beside = self.site.position_bias or self.site.soft_cap is not None
        return (mask is None or mask.shape[1] == 1) and not beside and not self.training

    def _projected(
        self, hidden_states: Tensor, source: Tensor | None, rotation: Any, cache: Any
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Queries, keys and values by bucket, turned, the latter two with those of the past."""
        site, kinds = self.site, self.kinds
        if self.fused:
            return self._fused(hidden_states, rotation, cache)
        queries = self._heads("query", self.q_proj(hidden_states), self.query_widths)
        if site.cross and cache is not None and cache.is_updated.get(self.layer_idx):
            layer = cache.cross_attention_cache.layers[self.layer_idx]
            return queries, *self._apart(layer.keys, layer.values)
        origin = source if site.cross and source is not None else hidden_states
        keys = self._heads("key", self.k_proj(origin), self.key_widths)
        values = self._heads("value", self.v_proj(origin), self.value_widths)
        if site.rotary:
            tables = [kind.tables(*angles(site, rotation)) for kind in kinds]
            every = list(zip(kinds, queries, keys, tables, strict=True))
            queries = [kind.rotate(query, *table) for kind, query, _, table in every]
            keys = [kind.rotate(key, *table) for kind, _, key, table in every]
        if cache is not None:
            keys, values = self._cached(cache, keys, values)
        return queries, keys, values

    def _fused(
        self, hidden_states: Tensor, rotation: Any, cache: Any
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """One product for queries, keys and values of one size; queries and keys turn together."""
        kind = self.kinds[0]
        both, value = self.qkv_proj(hidden_states).split(self.fused_widths, -1)
        both, value = kind.split_heads(both, kind.qk_dim), kind.split_heads(value, kind.v_dim)
        if self.site.rotary:
            both = kind.rotate(both, *kind.tables(*angles(self.site, rotation)))
        query, key = both.split([both.shape[1] - kind.count, kind.count], 1)
        if cache is not None:
            (key,), (value,) = self._cached(cache, [key], [value])
        return [query], [key], [value]

    def _heads(self, role: str, flat: Tensor, widths: list[int]) -> list[Tensor]:
        if role != "value" and self.site.norm is not None:
            return self._normed_heads(role, flat)
        parts = (flat,) if len(widths) == 1 else torch.split(flat, widths, -1)
        return [
            kind.padded(role, part, kind.v_dim if role == "value" else kind.qk_dim)
            for kind, part in zip(self.kinds, parts, strict=True)
        ]

    def _normed_heads(self, role: str, flat: Tensor) -> list[Tensor]:
        norm = self.q_norm if role == "query" else self.k_norm
        heads = torch.unflatten(flat, -1, (-1, self.site.head_dim)).transpose(1, 2)
        heads = normed(norm, self.whole_norm, heads)
        if self.whole_norm:
            heads = heads[:, self.query_heads if role == "query" else self.key_heads]
        counts = [
            kind.count * (kind.num_key_value_groups if role == "query" else 1)
            for kind in self.kinds
        ]
        parts = zip(self.kinds, heads.split(counts, 1), strict=True)
        return [kind.narrowed(role, part) for kind, part in parts]

    def _cached(
        self, cache: Any, keys: list[Tensor], values: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """All heads side by side as one head of the cache, so that not a byte is padding."""
        if self.site.cross:
            cache.is_updated[self.layer_idx] = True
            cache = cache.cross_attention_cache
        cache = getattr(cache, "self_attention_cache", cache)  # of an encoder–decoder cache
        if len(keys) == 1:
            key, value = appended(cache, keys[0], values[0], self.layer_idx)
            return [key], [value]
        parts = _side_by_side(keys), _side_by_side(values)
        return self._apart(*appended(cache, *parts, self.layer_idx))

    def _apart(self, key: Tensor, value: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What the cache holds, by bucket."""
        kinds = self.kinds
        if len(kinds) == 1:
            return [key], [value]
        key_parts = key.squeeze(1).split([kind.cached_key_width for kind in kinds], -1)
        value_parts = value.squeeze(1).split(self.value_widths, -1)
        return (
            [b.split_heads(part, b.qk_dim) for b, part in zip(kinds, key_parts, strict=True)],
            [b.split_heads(part, b.v_dim) for b, part in zip(kinds, value_parts, strict=True)],
        )

    def _attend(
        self,
        attend: Any,
        queries: list[Tensor],
        keys: list[Tensor],
        values: list[Tensor],
        mask: Tensor | None,
        bias: Tensor | None,
        options: dict[str, Any],
    ) -> list[tuple[Tensor, Tensor | None]]:
        site = self.site
        if site.sliding_window is not None:
            options["sliding_window"] = site.sliding_window
        if site.soft_cap is not None:
            options["softcap"] = site.soft_cap
        if site.window_inside:
            mask = beyond_window(site, queries[0], keys[0], mask)
        if bias is not None:  # of all original heads: other layers, with others left, share it
            bias = bias[..., -keys[0].shape[2] :]
            bias = bias if self.all_heads else bias[:, self.query_heads]
        biases = (
            [None] * len(queries) if bias is None else bias.split([q.shape[1] for q in queries], 1)
        )
        results = []
        for kind, q, k, v, b in zip(self.kinds, queries, keys, values, biases, strict=True):
            with_bias = {} if b is None else {"position_bias": b}
            parts = (q, k, v) if attend is one_query_attention else kind.of_one_size(q, k, v)
            results.append(
                attend(
                    kind,
                    *parts,
                    mask,
                    dropout=site.attention_dropout if self.training else 0.0,
                    scaling=site.scaling,
                    **options,
                    **with_bias,
                )
            )
        return results

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        contexts = [kind.contexts(output) for kind, output in zip(self.kinds, outputs, strict=True)]
        return self._output(contexts[0] if len(contexts) == 1 else torch.cat(contexts, dim=-1))

    def _output(self, context: Tensor) -> Tensor:
        if self.o_proj is None:
            return context
        context = self.o_proj(context)
        if self.training:
            context = nn.functional.dropout(context, self.site.output_dropout)
        return context

    def _weights(self, parts: list[Tensor | None]) -> Tensor | None:
        """Attention weights of the heads that are left, in the original's order."""
        there = [part for part in parts if part is not None]
        if len(there) < len(parts):
            return None
        weights = there[0] if len(there) == 1 else torch.cat(there, dim=1)
        if self.in_order:
            return weights
        heads = self.query_heads
        return weights[:, sorted(range(len(heads)), key=lambda place: heads[place])]


def _side_by_side(heads: list[Float[Tensor, "b _ t _"]]) -> Float[Tensor, "b 1 t width"]:
    return torch.cat([part.transpose(1, 2).flatten(2) for part in heads], dim=-1).unsqueeze(1)
