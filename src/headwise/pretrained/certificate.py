"""A bound on how far each head's attention moves, on the calibration inputs.

If a row of scores changes by e, then with ε = (max e − min e) / 2 the row of attention moves by at
most tanh(ε / 2) in total variation, whatever the scores are; so the head's context moves by at most
tanh(ε / 2) times the diameter of the values it mixes. (Adding a constant to e changes nothing. The
odds of any two keys change by a factor within e^{±2ε}; for a set of mass p the new mass is at most
p e^ε / (p e^ε + (1 − p) e^{−ε}) after centring, and the largest gain over p, at odds e^{−ε}, is
tanh(ε / 2).)
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.calibration import token_count
from headwise.pretrained.measure import score_maps
from headwise.pretrained.observe import Observed, observe
from headwise.pretrained.reductions import LayerReductions
from headwise.pretrained.shapes import LayerShape


@dataclass
class HeadCertificate:
    """Largest total-variation change of an attention row over the inputs seen: bound and truth."""

    layer: int
    head: int
    bound: float
    mean_bound: float
    measured: float
    rows: int

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than that probabilities are at most one."""
        return self.bound > 0.99


def certify(
    model: Any,
    sites: list[AttentionSite],
    reductions: list[LayerReductions],
    shapes: tuple[LayerShape, ...],
    batches: list[dict[str, Tensor]],
    tokens: int = 2048,
) -> list[HeadCertificate]:
    """Bound and measure every remaining head's change, with the original's inputs to each layer."""
    some = []
    for batch in batches[:: max(1, token_count(batches) // tokens)]:
        some.append(batch)
    zeros = {
        layer: {name: torch.zeros(site.heads) for name in ("bound", "total", "truth")}
        for layer, site in enumerate(sites)
    }
    rows = dict.fromkeys(range(len(sites)), 0)

    def look(layer: int, seen: Observed) -> None:
        query, key = reduced_heads(seen, reductions[layer], shapes[layer])
        before, after = seen.scores(), seen.scores(query, key)
        epsilon = score_spread(after - before, before) / 2
        bound = torch.tanh(epsilon / 2)
        truth = (after.softmax(-1) - before.softmax(-1)).abs().sum(-1) / 2
        sums = zeros[layer]
        sums["bound"] = torch.maximum(sums["bound"], bound.amax((0, 2)).cpu())
        sums["truth"] = torch.maximum(sums["truth"], truth.amax((0, 2)).cpu())
        sums["total"] += bound.sum((0, 2)).cpu()
        rows[layer] += bound.shape[0] * bound.shape[2]

    observe(model, sites, some, look)
    return [
        HeadCertificate(
            layer,
            head,
            float(zeros[layer]["bound"][head]),
            float(zeros[layer]["total"][head]) / rows[layer],
            float(zeros[layer]["truth"][head]),
            rows[layer],
        )
        for layer, shape in enumerate(shapes)
        for group in shape.groups
        for head in group.heads
    ]


def score_spread(change: Tensor, scores: Tensor) -> Float[Tensor, "b heads t"]:
    """max − min of the change over the keys that a query may see."""
    visible = torch.isfinite(scores)
    highest = change.masked_fill(~visible, -torch.inf).amax(-1)
    lowest = change.masked_fill(~visible, torch.inf).amin(-1)
    return highest - lowest


def reduced_heads(
    seen: Observed, reductions: LayerReductions, shape: LayerShape
) -> tuple[Tensor, Tensor]:
    """Queries and keys (at their full size) whose scores are those of the reduced layer."""
    site = seen.site
    dims = [group.qk_dim if group.heads else site.head_dim for group in shape.groups]
    maps = score_maps(site, reductions, dims).to(seen.query)
    query, key = seen.query @ maps.mT, seen.key
    moments = reductions.moments
    if shape.query_rank is not None:
        query = _projected(query, reductions, "query", shape.query_rank, moments.input_mean)
    if shape.key_rank is not None:
        key = _projected(key, reductions, "key", shape.key_rank, moments.input_mean)
    return query, key


def _projected(
    heads: Tensor, reductions: LayerReductions, role: str, rank: int, input_mean: Tensor | None
) -> Tensor:
    assert input_mean is not None
    factor, affine = getattr(reductions, f"{role}_factor"), getattr(reductions.weights, role)
    mean = affine.weight.double() @ input_mean
    if affine.bias is not None:
        mean = mean + affine.bias
    matrix = (factor.back[:, :rank] @ factor.into[:rank]).to(heads)
    flat = heads.transpose(1, 2).flatten(2) - mean.to(heads)
    changed = flat @ matrix.mT + mean.to(heads)
    return torch.unflatten(changed, -1, (heads.shape[1], -1)).transpose(1, 2)
