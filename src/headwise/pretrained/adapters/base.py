"""What an adapter says about a model: where each layer's attention lives, and nothing else."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class Projection:
    """Columns `start:stop` of what the module at `path` puts out (all of them by default)."""

    path: str
    start: int = 0
    stop: int | None = None

    def columns(self, output: Tensor) -> Tensor:
        """This projection's part of the module's output."""
        return output[..., self.start : self.stop]


@dataclass(frozen=True, kw_only=True)
class AttentionSite:
    """One attention layer inside a transformers model.

    Query head i uses key head i // (heads / kv_heads). `rotary` says that RoPE turns queries and
    keys after their projections, with coordinates i and i + head_dim / 2 forming pair i.
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
    """A layer's four projections in one layout, whatever the family's own."""

    query: LinearPart
    key: LinearPart
    value: LinearPart
    output: LinearPart


def read_weights(model: nn.Module, site: AttentionSite) -> AttentionWeights:
    """The layer's projections as float32 copies."""

    def project(projection: Projection) -> LinearPart:
        full = _affine(model.get_submodule(projection.path))
        rows = slice(projection.start, projection.stop)
        bias = None if full.bias is None else full.bias[rows].clone()
        return LinearPart(full.weight[rows].clone(), bias)

    return AttentionWeights(
        project(site.query),
        project(site.key),
        project(site.value),
        _affine(model.get_submodule(site.output)),
    )


def _affine(module: Any) -> LinearPart:
    weight = module.weight.detach().float()
    if not isinstance(module, nn.Linear):  # GPT-2's Conv1D keeps the transpose
        weight = weight.T
    bias = None if module.bias is None else module.bias.detach().float().clone()
    return LinearPart(weight.clone(memory_format=torch.contiguous_format), bias)


def modules_named(model: nn.Module, class_name: str) -> list[tuple[str, Any]]:
    """(path, module) of every submodule whose class has this name, in model order."""
    return [(path, m) for path, m in model.named_modules() if type(m).__name__ == class_name]
