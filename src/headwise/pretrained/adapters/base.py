"""What an adapter says about a model: where each layer's attention lives, and what it does there.

What lies between the projections and the scores (a norm, RoPE, a cap, a bias, a second sequence) is
named here and carried out in `mechanism`; an adapter only says which of it a layer has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.errors import require


@dataclass(frozen=True)
class Projection:
    """Columns `start:stop` of what the module at `path` puts out (all of them by default).

    With `period`, columns `start:stop` of every `period` of them: a module may put out a head's
    query, key and value side by side before the next head's.
    """

    path: str
    start: int = 0
    stop: int | None = None
    period: int | None = None

    def columns(self, output: Tensor) -> Tensor:
        """This projection's part of the module's output."""
        if self.period is None:
            return output[..., self.start : self.stop]
        blocks = torch.unflatten(output, -1, (-1, self.period))
        return blocks[..., self.start : self.stop].flatten(-2)


@dataclass(frozen=True)
class QKNorm:
    """Modules that normalise queries and keys after their projections and before RoPE.

    `whole_layer`: one norm over all heads together, so that each head's scale depends on the
    others; otherwise one a head, the same for all heads. `heads_first`: the module sees (batch,
    heads, tokens, size) rather than (batch, tokens, heads, size).
    """

    query: str
    key: str
    whole_layer: bool = False
    heads_first: bool = False

    def flat(self, output: Tensor) -> Float[Tensor, "b t width"]:
        """What the norm puts out, heads side by side."""
        if self.whole_layer:
            return output
        return (output.transpose(1, 2) if self.heads_first else output).flatten(2)


@dataclass(frozen=True, kw_only=True)
class AttentionSite:
    """One attention layer inside a transformers model.

    Query head i uses key head i // (heads / kv_heads). `rotary` says that RoPE turns queries and
    keys after their projections, coordinates i and i + rotary_dim / 2 forming pair i, or with
    `neighbours` 2i and 2i + 1; coordinates from `rotary_dim` on (None: none) are not turned.
    `neighbour_angles`: the module is given the cosines and sines in that order too. `cross`: keys
    and values are of a second sequence. `position_bias`: the module is given, or makes, numbers to
    add to its scores. `window_inside`: it hides what is beyond its window itself; others are given
    a mask that does.
    """

    path: str
    query: Projection
    key: Projection
    value: Projection
    output: str
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    scaling: float
    rotary: bool
    causal: bool
    layer_index: int
    attention_dropout: float = 0.0
    output_dropout: float = 0.0
    sliding_window: int | None = None
    window_inside: bool = False
    rotary_dim: int | None = None
    neighbours: bool = False
    neighbour_angles: bool = False
    norm: QKNorm | None = None
    soft_cap: float | None = None
    position_bias: bool = False
    cross: bool = False

    def __post_init__(self) -> None:
        require(
            min(self.heads, self.kv_heads, self.head_dim, self.hidden) >= 1,
            f"the configuration tells of {self.heads} heads, {self.kv_heads} of them with keys, of "
            f"{self.head_dim} coordinates each",
        )
        require(self.heads % self.kv_heads == 0, "key heads must divide the query heads evenly")
        partial = self.rotary_dim is not None and self.rotary_dim < self.head_dim
        turned = self.rotary_dim or 0
        require(
            turned <= self.head_dim
            and (not partial or (self.rotary and turned % 2 == 0 and self.head_dim % 2 == 0)),
            f"RoPE on {self.rotary_dim} of {self.head_dim} coordinates does not come in pairs",
        )
        require(
            self.norm is None or (self.rotary and not (partial or self.neighbours or self.cross)),
            "a norm on queries and keys is supported with RoPE on whole heads only, whose pairs "
            "are not neighbours",
        )
        require(
            self.soft_cap is None or self.rotary,
            "soft-capped scores are supported with RoPE only: without it key biases are dropped, "
            "which a cap would see",
        )

    @property
    def group_size(self) -> int:
        """Query heads that share one key head."""
        return self.heads // self.kv_heads

    @property
    def output_inside(self) -> bool:
        """Whether the attention module applies the output projection itself (BERT's does not)."""
        return self.output.startswith(self.path + ".")


class LinearPart(NamedTuple):
    """y = weight x + bias."""

    weight: Float[Tensor, "out in"]
    bias: Float[Tensor, " out"] | None


class AttentionWeights(NamedTuple):
    """A layer's four projections in one layout, whatever the family's own.

    Query and key rows are in the order of `mechanism.paired`: coordinates i and i + size / 2 of a
    head are a pair.
    """

    query: LinearPart
    key: LinearPart
    value: LinearPart
    output: LinearPart


def own_modules(path: str, query: str, key: str, value: str) -> dict[str, Any]:
    """The first fields of a site whose queries, keys and values have a module each."""
    parts = {"query": query, "key": key, "value": value}
    return {"path": path, **{name: Projection(f"{path}.{part}") for name, part in parts.items()}}


def modules_named(model: nn.Module, *class_names: str) -> list[tuple[str, Any]]:
    """(path, module) of every submodule whose class has such a name, in model order."""
    return [(path, m) for path, m in model.named_modules() if type(m).__name__ in class_names]


def modules_with(model: nn.Module, parts: str, attributes: str = "") -> list[tuple[str, Any]]:
    """(path, module) of every submodule that has all of these modules and attributes, in order.

    What a family's modules are called says what they are, where its class is known to be described:
    only registered families are read.
    """
    return [
        (path, module)
        for path, module in model.named_modules()
        if all(name in module._modules for name in parts.split())
        and all(hasattr(module, name) for name in attributes.split())
    ]


def stacks_of(sites: Sequence[AttentionSite]) -> dict[int, str]:
    """By layer, the stack it belongs to, such as encoder or decoder cross; {} where there is one.

    A stack is what tells paths apart first: encoder.block.0 and decoder.block.0, or
    text_model.layers.0 and vision_model.layers.0.
    """
    words = [[part for part in site.path.split(".") if not part.isdigit()] for site in sites]
    varied = [{*column} for column in zip(*words, strict=False)]
    place = next((at for at, names in enumerate(varied) if len(names) > 1), None)
    if place is None:
        return {}
    return {
        layer: f"{found[place]}{' cross' if site.cross else ''}"
        for layer, (site, found) in enumerate(zip(sites, words, strict=True))
    }
