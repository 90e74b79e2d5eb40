"""Gated heads (arXiv 2505.06708): a head's output is multiplied by a gate of the query token.

o_i ← o_i ⊙ σ(x W_g,i),   x the query token, W_g,i of v_dim columns

In the class-token network x is the class token, the same for every input: a gate there is a
constant factor.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from headwise.nets.layers import ParameterShapes, Params, linear, split_heads
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Asking, Outputs, Variant


@dataclass(frozen=True)
class GatedHeads(Variant):
    """Heads with a sigmoid gate for every coordinate of their output."""

    title: ClassVar[str] = "gated"

    def extra_shapes(self, layer: AttentionShape, width: int) -> ParameterShapes:
        """W_g."""
        return {"gate.weight": (layer.heads * layer.v_dim, width)}

    def gate(self, params: Params, name: str, asking: Asking, outputs: Outputs) -> Outputs:
        """The outputs times their gates."""
        _, _, heads, _, size = outputs.shape
        gates = torch.sigmoid(linear(asking, params, f"{name}.gate"))
        return outputs * split_heads(gates, heads, size)
