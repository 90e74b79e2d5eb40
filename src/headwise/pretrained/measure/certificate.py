"""A bound on how far each head's attention moves, on the calibration inputs.

The certificate and its proof are `headwise.theory.saturation`'s: a row of attention moves by at
most tanh(ε / 2) in total variation, ε half the spread of the change of its scores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.plan.reductions import LayerReductions, score_maps
from headwise.pretrained.plan.shapes import LayerShape
from headwise.theory.saturation import VACUOUS, row_changes


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
        return self.bound > VACUOUS


def certify(
    model: Any,
    sites: list[AttentionSite],
    reductions: list[LayerReductions],
    shapes: tuple[LayerShape, ...],
    batches: list[dict[str, Tensor]],
) -> list[HeadCertificate]:
    """Bound and measure every remaining head's change, with the original's inputs to each layer."""
    certifier = Certifier(reductions, shapes)
    observe(model, sites, batches, certifier.look)
    return certifier.certificates()


class Certifier:
    """Certificates of one cut of every layer, put together as the layers are seen."""

    def __init__(self, reductions: list[LayerReductions], shapes: tuple[LayerShape, ...]) -> None:
        self.reductions, self.shapes = reductions, shapes
        self.bound: dict[int, np.ndarray] = {}  # by layer: a number a head
        self.total: dict[int, np.ndarray] = {}
        self.truth: dict[int, np.ndarray] = {}
        self.rows = dict.fromkeys(range(len(shapes)), 0)

    def look(self, layer: int, seen: Observed) -> None:
        """Add one batch in one layer."""
        query, key = reduced_heads(seen, self.reductions[layer], self.shapes[layer])
        before, after = (_by_head(scores) for scores in (seen.scores(), seen.scores(query, key)))
        # What one head takes stays in the processor's cache: a sixth of the time of all at once.
        changes = [row_changes(*pair) for pair in zip(before, after, strict=True)]
        bound, truth = (
            np.stack(found).reshape(-1, seen.site.heads, before.shape[1])
            for found in ([each.bound for each in changes], [each.shift for each in changes])
        )
        zeros = np.zeros(seen.site.heads)
        self.bound[layer] = np.maximum(self.bound.get(layer, zeros), bound.max((0, 2)))
        self.truth[layer] = np.maximum(self.truth.get(layer, zeros), truth.max((0, 2)))
        self.total[layer] = self.total.get(layer, zeros) + bound.sum((0, 2))
        self.rows[layer] += bound.shape[0] * bound.shape[2]

    def certificates(self) -> list[HeadCertificate]:
        """One for each head that remains, in the order of the groups."""
        return [
            HeadCertificate(
                layer,
                head,
                float(self.bound[layer][head]),
                float(self.total[layer][head]) / self.rows[layer],
                float(self.truth[layer][head]),
                self.rows[layer],
            )
            for layer, shape in enumerate(self.shapes)
            for group in shape.groups
            for head in group.heads
        ]


def _by_head(scores: Float[Tensor, "b heads t s"]) -> Float[np.ndarray, "n t s"]:
    return scores.detach().cpu().flatten(0, 1).numpy()


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
        changed = _projected(seen, reductions, "query", shape.query_rank, moments.input_mean)
        query = seen.normed("query", changed)
    if shape.key_rank is not None:
        changed = _projected(seen, reductions, "key", shape.key_rank, moments.input_mean)
        key = seen.normed("key", changed)
    return query, key


def _projected(
    seen: Observed, reductions: LayerReductions, role: str, rank: int, input_mean: Tensor | None
) -> Tensor:
    assert input_mean is not None
    heads = seen.projected[role]
    factor, affine = getattr(reductions, f"{role}_factor"), getattr(reductions.weights, role)
    mean = affine.weight.double() @ input_mean
    if affine.bias is not None:
        mean = mean + affine.bias
    matrix = (factor.back[:, :rank] @ factor.into[:rank]).to(heads)
    flat = heads.transpose(1, 2).flatten(2) - mean.to(heads)
    changed = flat @ matrix.mT + mean.to(heads)
    return torch.unflatten(changed, -1, (heads.shape[1], -1)).transpose(1, 2)
