"""One token through all of a layer's heads in a few calls, whatever their sizes."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.model.heads import HeadBucket
from headwise.pretrained.model.projections import order_of
from headwise.pretrained.model.softmax import contexts_of
from headwise.pretrained.model.token.angles import angle_table
from headwise.pretrained.model.token.growing import appended
from headwise.pretrained.model.token.places import Places, places_of


class HeadsAtOnce:
    """A small model's token costs what its calls cost, so all that follows from shapes and weights
    is worked out once (`Places`): columns are put in order, padded and paired in one call, and
    angles are looked up in another."""

    def __init__(self, site: AttentionSite, kinds: list[HeadBucket]) -> None:
        self._site, self._kinds = site, kinds
        self._widths = [
            sum(kind.query_width for kind in kinds),
            sum(kind.key_width for kind in kinds),
            sum(kind.value_width for kind in kinds),
        ]
        self._places: Places | None = None

    def forget(self) -> None:
        """Drop what was worked out from weights that are there no longer."""
        self._places = None

    def contexts(
        self,
        columns: Float[Tensor, "b 1 width"],
        made_by: tuple[nn.Module, ...],
        rotation: Any,
        cache: Any,
        mask: Tensor | None,
    ) -> Float[Tensor, "b 1 contexts"]:
        """From a token's queries, keys and values, side by side, to what all heads give.

        They are in the order of the projections that they are `made_by`.
        """
        places = self._places
        if places is None:
            with torch.inference_mode(False):  # they may be kept for a gradient later
                order = order_of(made_by, self._widths)
                places = self._places = places_of(self._kinds, self._site, order)
        batch, groups = len(columns), places.groups
        both, value = self._turned(columns, rotation, places)
        *queries, key = both.split_with_sizes(places.sizes, -1)
        new = key.view(batch, groups, 1, -1), value.view(batch, groups, 1, -1)
        keys, values = self._cached(cache, *new)
        contexts, whole = [], len(places.parts) == 1
        for query, part in zip(queries, places.parts, strict=True):
            scaled = query.reshape(batch * groups, -1, part.width)
            met = (keys, values) if whole else (keys[..., part.keys], values[..., part.values])
            context = contexts_of(scaled, *met, mask).view(batch, 1, -1)
            contexts.append(context if part.own is None else context.index_select(-1, part.own))
        return contexts[0] if whole else torch.cat(contexts, -1)

    def _turned(self, columns: Tensor, rotation: Any, places: Places) -> tuple[Tensor, Tensor]:
        """Queries, scaled, and keys after RoPE: each coordinate turns with its pair's other one."""
        taken, size = columns.index_select(-1, places.columns), sum(places.sizes)
        rest = taken.shape[-1] - size
        if places.factors is not None:
            own, value = taken.split_with_sizes([size, rest], -1)
            return own * places.factors.to(own.dtype), value
        own, other, value = taken.split_with_sizes([size, size, rest - size], -1)
        found = angle_table(self._site, rotation).index_select(-1, places.angles)
        cos, sin = found.split_with_sizes([size, size], -1)
        return torch.addcmul(own * cos, other, sin).to(own.dtype), value

    def _cached(self, cache: Any, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if cache is None:
            return key, value
        cache = getattr(cache, "self_attention_cache", cache)  # of an encoder–decoder cache
        return appended(cache, key, value, self._site.layer_index)


def at_once(attention: nn.Module, site: AttentionSite, kinds: list[HeadBucket]) -> HeadsAtOnce:
    """The heads of an attention, which work out anew in what order their columns are when other
    weights are loaded."""
    attention.register_load_state_dict_post_hook(_forget)
    return HeadsAtOnce(site, kinds)


def _forget(attention: Any, _: Any) -> None:
    attention.heads_at_once.forget()
