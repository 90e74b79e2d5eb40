"""What the kernel needs to know of a network, whatever its specification."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int

from headwise.core.errors import require
from headwise.nets.class_token import ClassTokenShape
from headwise.nets.pooled import SequenceNetShape
from headwise.nets.sequence import HeadPooling
from headwise.nets.shape import AttentionShape
from headwise.nets.variants.pooling import class_sight


@dataclass(frozen=True)
class KernelForm:
    """A one-layer network: sizes, flags, and what its heads share or keep."""

    token_dim: int
    width: int
    embed_dim: int
    layer: AttentionShape
    readout_width: int
    outputs: int
    key_maps: int
    kept: int = 0
    by_features: bool = False  # weights φ(q)·φ(k) in the place of a softmax
    class_token_is_key: bool = True
    scaled: bool = True
    residual: bool = False
    norm: bool = False


def kernel_form(shape: SequenceNetShape) -> KernelForm:
    """The form of a network that the kernel covers (`scope.covers`)."""
    layer = shape.attention_layers[0]
    form = KernelForm(
        token_dim=shape.token_dim,
        width=shape.embed.widths[0],
        embed_dim=shape.embed_dim,
        layer=layer,
        readout_width=shape.readout.widths[0],
        outputs=shape.outputs,
        key_maps=layer.heads,
    )
    if isinstance(shape, ClassTokenShape):
        return replace(
            form,
            class_token_is_key=shape.class_token_is_key,
            scaled=shape.scaled,
            residual=shape.residual,
            norm=shape.norm,
        )
    assert isinstance(shape.pooling, HeadPooling)
    variant = shape.pooling.mechanism
    return replace(
        form,
        key_maps=variant.maps(layer)[1],
        kept=variant.strongest(),
        by_features=not variant.folds,
    )


def reach_of(shape: SequenceNetShape, length: int) -> Int[np.ndarray, " two_a_head"]:
    """First token that each head sees, and the first after it that it does not, head by head."""
    heads = shape.attention_layers[0].heads
    seen = None
    if not isinstance(shape, ClassTokenShape):
        assert isinstance(shape.pooling, HeadPooling)
        seen = class_sight(shape.pooling.mechanism, heads, length, torch.device("cpu"))
    if seen is None:
        return np.tile(np.array([0, length]), heads)
    tokens = seen[:, 0, :length].numpy()
    first, count = tokens.argmax(1), tokens.sum(1)
    within = np.arange(length)
    range_of = (within >= first[:, None]) & (within < (first + count)[:, None])
    require(bool((range_of == tokens).all()), "a head of the kernel sees a range of tokens")
    return np.stack([first, first + count], 1).reshape(-1).astype(np.int64)
