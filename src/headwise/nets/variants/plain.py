"""Plain attention, the variant that changes nothing: o_i = softmax(q_i·K_iᵀ/√n) V_i."""

from dataclasses import dataclass
from typing import ClassVar

from headwise.nets.variants._variant import Variant


@dataclass(frozen=True)
class PlainHeads(Variant):
    """Plain attention."""

    title: ClassVar[str] = "plain"
