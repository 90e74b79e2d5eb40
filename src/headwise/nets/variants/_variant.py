"""What a variant of attention may change: a few steps, each of which plain attention leaves alone.

In every form of attention a head scores the keys, weighs them, takes the weighted mean of the
values and outputs it. A variant overrides some of these steps; the same steps make the
class-token form (`pooling.py`), where the class token is the only query, and the full form
(`mixing.py`), where every token is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.core.errors import check_whole
from headwise.nets.layers import ParameterShapes, Params
from headwise.nets.shape import AttentionShape

Asking = Float[Tensor, "members #batch asking width"]
"""The query tokens, as the layer reads them."""

Queries = Float[Tensor, "members batch maps asking rank"]
Keys = Float[Tensor, "members batch maps keys rank"]
Seen = Bool[Tensor, "#maps asking keys"] | None
"""Which keys each query may see; None: all."""

Weights = Float[Tensor, "members batch maps asking keys"]
"""How much a query takes of each key; before the softmax, its scores."""

Outputs = Float[Tensor, "members batch heads asking size"]
"""The output of each head for each query token."""


@dataclass(frozen=True)
class Variant:
    """A variant of attention; the methods here are plain attention's.

    Its fields are whole numbers, so that it has a text: the name and the numbers, as "grouped:2".
    `name` arguments name a layer, under which its parameters are found.
    """

    title: ClassVar[str] = ""
    folds: ClassVar[bool] = True
    """Are scores linear in the keys, so that pooling may come before the value map?"""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_whole(getattr(self, field.name), f"{self.title}'s {field.name}", 0)

    def __str__(self) -> str:
        return ":".join([self.title, *(str(getattr(self, field.name)) for field in fields(self))])

    @property
    def label(self) -> str:
        """Its name in tables, where what is swept stands in a column of its own."""
        return str(self)

    def check(self, layer: AttentionShape) -> None:
        """Refuse a layer that has no such form."""

    def maps(self, layer: AttentionShape) -> tuple[int, int, int]:
        """How many query, key and value maps there are; query heads share the others evenly."""
        return layer.heads, layer.heads, layer.heads

    def active(self, layer: AttentionShape) -> int:
        """How many heads contribute to one token's output."""
        return layer.heads

    def readers(self, layer: AttentionShape) -> Sequence[tuple[int, ...]]:
        """Of each map of weights, the heads whose output it enters (`combine`); as many of all."""
        return [(head,) for head in range(layer.heads)]

    def extra_shapes(self, layer: AttentionShape, width: int) -> ParameterShapes:
        """Parameters beside the four maps, for a stream of this width."""
        return {}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """How an extra parameter starts: by default uniform of variance 1/(3·inputs)."""
        return rng.uniform(-1, 1, size) / np.sqrt(size[-1])

    def mix_scores(self, params: Params, name: str, scores: Weights) -> Weights:
        """A linear map of the scores across heads, before the softmax."""
        return scores

    def visible(
        self, distance: Int[Tensor, "asking keys"], longest: int, heads: int
    ) -> Bool[Tensor, "heads asking keys"] | None:
        """Which keys a head may see by their distance back, 0 ≤ distance < longest.

        A class token has distance −1 to itself and is seen by all. None: every key.
        """
        return None

    def strongest(self) -> int:
        """How many keys of the largest scores a head keeps; 0: all."""
        return 0

    def weigh(self, params: Params, name: str, query: Queries, key: Keys, seen: Seen) -> Weights:
        """Weights of the keys; queries are scaled already. A row that sees no key has zeros."""
        scores = self.mix_scores(params, name, query @ key.mT)
        if seen is not None:
            scores = scores.masked_fill(~seen, -torch.inf)
        scores = keep_strongest(scores, self.strongest())
        if seen is None:
            return torch.softmax(scores, -1)
        lowest = torch.finfo(scores.dtype).min
        return torch.softmax(scores.clamp_min(lowest), -1).masked_fill(scores == -torch.inf, 0.0)

    def combine(
        self, params: Params, name: str, weights: Float[Tensor, "members #batch maps asking keys"]
    ) -> Float[Tensor, "members #batch heads asking keys"]:
        """A linear map of the weights across heads, after the softmax."""
        return weights

    def gate(self, params: Params, name: str, asking: Asking, outputs: Outputs) -> Outputs:
        """What becomes of the heads' outputs, given the query tokens."""
        return outputs

    def penalty(
        self, params: Params, name: str, asking: Float[Tensor, "members batch asking width"]
    ) -> Float[Tensor, " members"] | None:
        """What is added to the loss in training; None: nothing."""
        return None


def keep_strongest(
    scores: Float[Tensor, "*batch keys"], count: int
) -> Float[Tensor, "*batch keys"]:
    """−∞ for all but the `count` largest scores of a row (0: all stay; keys that tie stay)."""
    if not 0 < count < scores.shape[-1]:
        return scores
    least = scores.topk(count, -1).values[..., -1:]
    return scores.masked_fill(scores < least, -torch.inf)
