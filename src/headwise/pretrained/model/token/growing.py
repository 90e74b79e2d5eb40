"""Tokens appended to a long cache without copying what is there."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

_LONG = 2**15  # numbers in a layer's keys: from here on copying them costs more than this does
_LEAST_ROOM, _SHARE = 64, 32  # tokens; one token's room more for so many that are there


def appended(
    cache: Any, key: Float[Tensor, "b g n dim"], value: Float[Tensor, "b g n v_dim"], index: int
) -> tuple[Tensor, Tensor]:
    """`cache.update(key, value, index)`: all keys and values of a layer, the new ones last.

    transformers' growing cache copies all of it for every token, which reads and writes twice what
    attention reads. Here it is copied where there is no room left behind it.
    """
    layer = _long_layer(cache, key, index)
    if layer is None:
        found: tuple[Tensor, Tensor] = cache.update(key, value, index)
        return found
    room = _ROOMS.get(layer)
    if room is None or not room.goes_on(layer, key.shape[-2]):
        room = _ROOMS[layer] = _Room.behind(layer, key.shape[-2])
    layer.keys, layer.values = room.take(key, value)
    return layer.keys, layer.values


def _long_layer(cache: Any, key: Tensor, index: int) -> Any:
    """A layer of transformers' own growing kind that is long, where nobody traces what is done."""
    layers = getattr(cache, "layers", ())
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or index >= len(layers):
        return None
    layer = layers[index]
    if type(layer).__name__ != "DynamicLayer" or getattr(cache, "offloading", False):
        return None
    if not layer.is_initialized or layer.keys.numel() < _LONG:
        return None
    alike = layer.keys.shape[:2] == key.shape[:2] and layer.keys.dtype == key.dtype
    return layer if alike else None


@dataclass
class _Room:
    """Keys and values of a layer in tensors with places left.

    A place that was handed out is not written again, so whoever holds an earlier state of the
    cache, crops it, reorders it or copies it finds there what was there.
    """

    whole: tuple[Tensor, Tensor]
    handed_out: tuple[Tensor, Tensor]

    @classmethod
    def behind(cls, layer: Any, new: int) -> "_Room":
        """A copy of what a layer holds, with room for new tokens and some more."""
        there, whole = (layer.keys, layer.values), []
        used = layer.keys.shape[-2]
        for part in there:
            batch, groups, _, dim = part.shape
            length = used + new + max(_LEAST_ROOM, used // _SHARE)
            whole.append(part.new_empty(batch, groups, length, dim))
            whole[-1][:, :, :used] = part
        return cls((whole[0], whole[1]), there)

    def goes_on(self, layer: Any, new: int) -> bool:
        """The layer holds what was last handed out, and there is room that may be written to."""
        (keys, values), whole = self.handed_out, self.whole[0]
        same = layer.keys is keys and layer.values is values
        fits = keys.shape[-2] + new <= whole.shape[-2]
        return same and fits and (torch.is_inference_mode_enabled() or not whole.is_inference())

    def take(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the new ones written behind the others."""
        used = self.handed_out[0].shape[-2]
        until = used + key.shape[-2]
        keys, values = self.whole
        keys[:, :, used:until], values[:, :, used:until] = key, value
        self.handed_out = keys[:, :, :until], values[:, :, :until]
        return self.handed_out


_ROOMS: WeakKeyDictionary[Any, _Room] = WeakKeyDictionary()
