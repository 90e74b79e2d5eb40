"""Mixture of heads (MoH, arXiv 2410.11842): shared heads, and the best of the others by a router.

o = Σ_i g_i(x) H_i W_O,i        x the query token; S shared heads, R of the others routed

    g_i = 2α₁·S·softmax(W_s x)_i        i shared
    g_i = 2α₂·R·p_i / Σ_{top-R} p       i among the R largest of p = softmax(W_r x), else 0
    [α₁, α₂] = softmax(W_h x)

The factors S, R and 2 are those of the authors' program: with routers at zero all gates are 1. The
balance loss is heads² · mean_i(P_i·f_i) over the routed heads, P_i the mean probability and f_i the
share of tokens that route to i; it is 1·R where the load is even.

In the class-token network the query token is the class token, the same for every input: there
the router picks R heads once and for all, and there is no load to balance.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.layers import ParameterShapes, Params, linear
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Asking, Outputs, Variant

_BALANCE = 0.01  # weight of the balance loss, the paper's β


@dataclass(frozen=True)
class MixtureOfHeads(Variant):
    """`shared` heads that are always active and `routed` of the others, chosen by the token."""

    shared: int = 1
    routed: int = 1
    title: ClassVar[str] = "mixture"

    @property
    def label(self) -> str:
        """All mixtures are one model; how many heads are active is swept."""
        return self.title

    def check(self, layer: AttentionShape) -> None:
        """At least one head is routed, and no more than there are."""
        require(
            1 <= self.routed <= layer.heads - self.shared,
            f"of {layer.heads} heads {self.shared} are shared and {self.routed} routed: that is "
            "no mixture; at least 1 is routed, and both together are at most the heads",
        )

    def active(self, layer: AttentionShape) -> int:
        """Shared and routed heads."""
        return self.shared + self.routed

    def extra_shapes(self, layer: AttentionShape, width: int) -> ParameterShapes:
        """The routers."""
        shapes: ParameterShapes = {"route.weight": (layer.heads - self.shared, width)}
        if self.shared:
            shapes |= {"share.weight": (self.shared, width), "balance.weight": (2, width)}
        return shapes

    def gate(self, params: Params, name: str, asking: Asking, outputs: Outputs) -> Outputs:
        """Every head's output times g_i."""
        chances, chosen = self._route(params, name, asking)
        gates = chances * chosen
        gates = self.routed * gates / gates.sum(-1, keepdim=True)
        if self.shared:
            always = self.shared * torch.softmax(linear(asking, params, f"{name}.share"), -1)
            both = 2 * torch.softmax(linear(asking, params, f"{name}.balance"), -1)
            gates = torch.cat([both[..., :1] * always, both[..., 1:] * gates], -1)
        return outputs * gates.mT.unsqueeze(-1)

    def penalty(
        self, params: Params, name: str, asking: Float[Tensor, "members batch asking width"]
    ) -> Float[Tensor, " members"] | None:
        """The balance loss, times the paper's weight."""
        return _BALANCE * self.imbalance(params, name, asking)

    def imbalance(
        self, params: Params, name: str, asking: Float[Tensor, "members batch asking width"]
    ) -> Float[Tensor, " members"]:
        """The balance loss itself."""
        chances, chosen = self._route(params, name, asking)
        heads = chances.shape[-1]
        load = chances.mean((1, 2)) * chosen.mean((1, 2))  # (members, heads)
        return heads**2 * load.mean(-1)

    def _route(
        self, params: Params, name: str, asking: Asking
    ) -> tuple[Float[Tensor, "members #batch asking heads"], Tensor]:
        """Probabilities of the routed heads, and which are chosen (0 or 1)."""
        chances = torch.softmax(linear(asking, params, f"{name}.route"), -1)
        best = chances.topk(self.routed, -1).indices
        return chances, torch.zeros_like(chances).scatter(-1, best, 1.0)
