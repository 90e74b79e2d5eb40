"""Heads of one shape inside a reduced layer: padding, narrowing after a norm, RoPE by pair."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.mechanism import turned
from headwise.pretrained.plan.shapes import Bucket, LayerShape, pad_columns

_MANY = 256  # tokens, from which on a copy a head is quicker than one call that gathers columns


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
        if site.norm is not None:  # narrowed after the norm
            keys = [site.head_dim] * self.count
        wide = site.head_dim if site.norm is not None else bucket.qk_dim
        self._pad("query", [d for d in keys for _ in range(bucket.queries)], wide)
        self._pad("key", keys, wide)
        self._pad("value", values, bucket.v_dim)
        self.value_sizes = values
        by_query = [dim for dim in values for _ in range(bucket.queries)]
        places = pad_columns(by_query, bucket.v_dim)
        real = [place for place, column in enumerate(places) if column < sum(by_query)]
        ragged = len(real) < len(places)
        self.register_buffer("context_columns", torch.tensor(real) if ragged else None)
        self.query_width = sum(keys) * bucket.queries
        self.key_width, self.value_width = sum(keys), sum(values)
        self.cached_key_width = self.count * bucket.qk_dim
        # Which of the original head's rotary coordinates each kept coordinate turns with.
        reduced = site.rotary and bucket.qk_dim < site.head_dim
        rows = self.count * (bucket.queries + 1 if shape.fused else 1)  # queries' first, if fused
        turns = torch.zeros(rows, bucket.qk_dim, dtype=torch.long) if reduced else None
        self.register_buffer("rotary_columns", turns)
        # Complex gains of the kept pairs, where a norm keeps them from going into the weights.
        gains = torch.zeros(self.count * bucket.queries, bucket.qk_dim) if reduced else None
        self.query_gains = None if gains is None or site.norm is None else nn.Parameter(gains)

    def _pad(self, role: str, sizes: list[int], largest: int) -> None:
        columns = torch.tensor(pad_columns(sizes, largest)) if min(sizes) < largest else None
        self.register_buffer(f"{role}_columns", columns)

    def padded(
        self, role: str, flat: Float[Tensor, "b t width"], dim: int
    ) -> Float[Tensor, "b h t dim"]:
        """New tokens' columns split into heads, zeros where a head is smaller than the largest."""
        columns = self._buffers[f"{role}_columns"]
        if columns is not None and role == "value" and flat.shape[:-1].numel() >= _MANY:
            heads = flat.split(self.value_sizes, -1)
            filled = [nn.functional.pad(head, (0, dim - head.shape[-1])) for head in heads]
            flat = torch.cat(filled, -1)
        elif columns is not None:
            flat = nn.functional.pad(flat, (0, 1)).index_select(-1, columns)
        return self.split_heads(flat, dim)

    def contexts(self, output: Float[Tensor, "b t h dim"]) -> Float[Tensor, "b t width"]:
        """What heads put out, side by side, without what padding gave."""
        columns, heads = self._buffers["context_columns"], output[..., : self.v_dim]
        if columns is None:
            return heads.flatten(2)
        if output.shape[:2].numel() < _MANY:
            return heads.flatten(2).index_select(-1, columns)
        sizes = [size for size in self.value_sizes for _ in range(self.num_key_value_groups)]
        pairs = zip(heads.unbind(2), sizes, strict=True)
        return torch.cat([head[..., :size] for head, size in pairs], -1)

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

    def _columns(self, repeat: int) -> Tensor | None:
        columns = self._buffers["rotary_columns"]
        return None if columns is None else columns.repeat_interleave(repeat, dim=0)

    def turning(self, role: str, head_dim: int) -> Tensor:
        """By query (or key) head, the rotary coordinate that each coordinate turns with."""
        columns, queries = self._buffers["rotary_columns"], self.count * self.num_key_value_groups
        count = queries if role == "query" else self.count
        if columns is None:
            return torch.arange(head_dim).expand(count, -1)
        if len(columns) > self.count:  # of a fused layer
            return columns[:queries] if role == "query" else columns[queries:]
        return columns.repeat_interleave(count // self.count, dim=0)

    def narrowed(self, role: str, heads: Tensor) -> Tensor:
        """Normed heads cut to their kept pairs, the queries' pairs with their gains."""
        columns = self._columns(self.num_key_value_groups if role == "query" else 1)
        if columns is None:
            return heads
        kept = columns[None, :, None].expand(heads.shape[0], -1, heads.shape[2], -1)
        heads = heads.gather(-1, kept)
        if role == "key" or self.query_gains is None:
            return heads
        real, imaginary = self.query_gains.unsqueeze(1).chunk(2, dim=-1)
        return turned(heads, torch.cat([real, real], -1), torch.cat([imaginary, imaginary], -1))

    def tables(self, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines (b, heads, t, dim) of kept pairs, from (b, t, head_dim) of all; of one
        head, if it is that of all."""
        columns = self._buffers["rotary_columns"]
        if columns is None:
            return cos.unsqueeze(1), sin.unsqueeze(1)
        taken = (table.index_select(-1, columns.flatten()) for table in (cos, sin))
        first, second = (self.split_heads(table, self.qk_dim) for table in taken)
        return first, second

    def rotate(
        self, heads: Float[Tensor, "b h t dim"], cos: Tensor, sin: Tensor
    ) -> Float[Tensor, "b h t dim"]:
        """RoPE with each kept pair's own frequency; queries of a key head have that head's."""
        if cos.shape[1] in (1, heads.shape[1]):
            return turned(heads, cos, sin)
        grouped = torch.unflatten(heads, 1, (cos.shape[1], -1))
        return turned(grouped, cos.unsqueeze(2), sin.unsqueeze(2)).flatten(1, 2)
