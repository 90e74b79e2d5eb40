"""Watch attention at work and add up a few numbers a head.

- effective rank of the query–key form, by weights (exp of the entropy of the squared singular
  values of W_Qᵀ W_K) and by activations (with the moments of queries and of
  sensitivity-weighted keys in it);
- smallest query–key size at which the head's output changes by 1 %, 5 %, 10 % (root mean square);
- entropy of attention, and how the output error at a quarter of the size falls with length;
- similarity of each head's output to the most similar other head of its layer;
- how much of its attention falls on tokens near and far.
"""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.progress import OnProgress, part_of, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.measure.observe import Look, Observed, observe
from headwise.pretrained.plan.reductions import LayerReductions, score_maps, square_root
from headwise.pretrained.text.calibration import shortened

THRESHOLDS = (0.01, 0.05, 0.10)


def watch_heads(
    model: Any,
    measurement: Measurement,
    batches: list[dict[str, Tensor]],
    look_too: Look,
    on_progress: OnProgress = quiet,
) -> "list[HeadWatch]":
    """Every layer, watched at several sequence lengths; `look_too` sees the inputs as they are.

    A causal model shows all lengths at once, because it reads the first tokens as if they were all.
    """
    sites = measurement.sites
    watches = [
        HeadWatch(site, layer) for site, layer in zip(sites, measurement.reductions, strict=True)
    ]
    lengths = _lengths(batches)

    def look(layer: int, seen: Observed, length: int) -> None:
        watches[layer].look(seen, length, last=length == lengths[-1])

    def look_at_all(layer: int, seen: Observed) -> None:
        for length in lengths:
            look(layer, seen.first(length), length)
        look_too(layer, seen)

    if lengths[-1] and all(site.causal and not site.cross for site in sites):
        part = part_of(on_progress, 0.0, 1.0, "watching attention")
        observe(model, sites, batches, look_at_all, part)
        return watches
    for done, length in enumerate(lengths):
        cut = shortened(batches, length) if length else batches
        ends = (done / (len(lengths) + 1), (done + 1) / (len(lengths) + 1))
        part = part_of(on_progress, *ends, "watching attention")
        observe(model, sites, cut, partial(look, length=length), part)
    observe(model, sites, batches, look_too)
    return watches


def _lengths(batches: list[dict[str, Tensor]]) -> list[int]:
    """Several sequence lengths, one that all batches have last; of images there is one (0)."""
    if "input_ids" not in batches[0]:
        return [0]
    longest = min(batch["input_ids"].shape[1] for batch in batches)
    return sorted({max(8, longest // part) for part in (8, 4, 2, 1)})


class HeadWatch:
    """Sums over what one layer's heads do."""

    def __init__(self, site: AttentionSite, reductions: LayerReductions) -> None:
        self.site, self.reductions = site, reductions
        self.length = 0  # the longest
        step = 2 if site.rotary else 1
        eighth = max(step, site.head_dim // 8 // step * step)
        self.sizes = sorted({step, *range(eighth, site.head_dim, eighth)})
        maps = [score_maps(site, reductions, [size] * site.kv_heads) for size in self.sizes]
        self.maps = torch.stack(maps).float()
        output = reductions.weights.output.weight.double()
        by_head = torch.unflatten(output.T, 0, (site.heads, -1))  # heads, dim, hidden
        self.metric = square_root(by_head @ by_head.mT).float()
        self.output = by_head.float()
        self.change: dict[int, Tensor] = {}
        self.energy: dict[int, Tensor] = {}
        self.seen_length: dict[int, int] = {}
        self.entropy = torch.zeros(site.heads)
        self.top = torch.zeros(site.heads)
        self.rows_seen = 0
        self.gram = torch.zeros(site.heads, site.heads)
        self.reach: Tensor | None = None  # attention by range of distances; none across sequences

    def look(self, seen: Observed, length: int, *, last: bool) -> None:
        """Add what one batch shows at this length; after the `last` there is no longer one."""
        self.length = length
        weights = seen.scores().softmax(-1)
        context = seen.attend(weights)
        changes = torch.stack(
            [
                (seen.attend(seen.scores(seen.query @ maps.mT).softmax(-1)) - context)
                .matmul(self.metric)
                .square()
                .sum((0, 2, 3))
                for maps in self.maps
            ]
        )
        energy = (context @ self.metric).square().sum((0, 2, 3))
        self.change[length] = self.change.get(length, 0) + changes
        self.energy[length] = self.energy.get(length, 0) + energy
        self.seen_length[length] = weights.shape[-1]
        if last:
            self.entropy += -(weights * weights.clamp(min=1e-30).log()).sum(-1).sum((0, 2))
            self.top += weights.amax(-1).sum((0, 2))
            self.rows_seen += weights.shape[0] * weights.shape[2]
            outputs = torch.einsum("bhtd,hdo->hbto", context, self.output).flatten(1)
            self.gram += outputs @ outputs.T
            text = length > 0
            if text and not self.site.cross and weights.shape[-1] == weights.shape[-2]:
                far = by_distance(weights)
                self.reach = far if self.reach is None else self.reach + far

    def relative(self, length: int) -> Float[np.ndarray, "sizes heads"]:
        """Root-mean-square change of the head's output, relative to the output."""
        change: Any = (self.change[length] / self.energy[length].clamp(min=1e-30)).sqrt().numpy()
        return np.asarray(change)

    def shares(self) -> Float[np.ndarray, "heads ranges"]:
        """The share of each head's attention in each range of distances."""
        assert self.reach is not None
        return np.asarray((self.reach / self.reach.sum(-1, keepdim=True)).cpu().numpy())

    def rows(self, layer: int) -> list[dict[str, Any]]:
        """One row a head: ranks, sizes, entropy, similarity."""
        relative = self.relative(self.length)
        norms = self.gram.diagonal().clamp(min=1e-30).sqrt()
        similarity = (self.gram / norms / norms[:, None]).abs().fill_diagonal_(0)
        by_weights, by_activations = effective_ranks(self.site, self.reductions)
        return [
            {
                "layer": layer,
                "head": head,
                "rank_by_weights": by_weights[head],
                "rank_by_activations": by_activations[head],
                **{
                    f"size_at_{limit:.0%}".replace("%", "pct"): self._size_at(
                        relative[:, head], limit
                    )
                    for limit in THRESHOLDS
                },
                "entropy": float(self.entropy[head]) / self.rows_seen,
                "largest_weight": float(self.top[head]) / self.rows_seen,
                "most_similar_head": int(similarity[head].argmax()),  # one head alone: itself
                "similarity": float(similarity[head].max()),
            }
            for head in range(self.site.heads)
        ]

    def _size_at(self, change: Float[np.ndarray, " sizes"], limit: float) -> int:
        """The smallest measured size from which on the change stays within the limit."""
        size = self.site.head_dim
        for candidate, value in reversed(list(zip(self.sizes, change, strict=True))):
            if value > limit:
                break
            size = candidate
        return size

    def errors(self, layer: int) -> list[dict[str, Any]]:
        """One row a head, size and length: how far the head's output moves."""
        return [
            {
                "layer": layer,
                "head": head,
                "size": size,
                "length": self.seen_length[length],
                "change": float(value),
            }
            for length in self.change
            for size, values in zip(self.sizes, self.relative(length), strict=True)
            for head, value in enumerate(values)
        ]


def distance_ranges(length: int) -> list[tuple[int, int]]:
    """First and last distance of each range: 0, 1, 2–3, 4–7 and so on below the length."""
    firsts = [0, *(2**power for power in range((length - 1).bit_length()))]
    return [(first, end - 1) for first, end in pairwise([*firsts, length])]


def by_distance(weights: Float[Tensor, "b heads t t"]) -> Float[Tensor, "heads ranges"]:
    """Each head's attention, summed over queries, in each range of distances."""
    length = weights.shape[-1]
    place = torch.arange(length, device=weights.device)
    distance = (place[:, None] - place).abs()
    summed = weights.sum(0)
    return torch.stack(
        [
            summed[:, (distance >= first) & (distance <= last)].sum(-1)
            for first, last in distance_ranges(length)
        ],
        dim=-1,
    )


def effective_ranks(
    site: AttentionSite, reductions: LayerReductions
) -> tuple[list[float], list[float]]:
    """exp(entropy) of the query–key form's squared singular values: of weights, of activations."""
    weights, activations = singular_values(site, reductions)
    return _effective(weights), _effective(activations)


def singular_values(
    site: AttentionSite, reductions: LayerReductions
) -> tuple[Float[Tensor, "heads n"], Float[Tensor, "heads n"]]:
    """The query–key form's singular values: of weights, of activations.

    With RoPE the form depends on the distance; this is the one at distance zero.
    """
    dim, per = site.head_dim, site.group_size
    query = torch.unflatten(reductions.weights.query.weight.double(), 0, (-1, dim))
    key = torch.unflatten(reductions.weights.key.weight.double(), 0, (-1, dim))
    key = key.repeat_interleave(per, dim=0)
    root = square_root(query @ query.mT)
    weights = torch.linalg.svdvals(root @ square_root(key @ key.mT))
    moments = reductions.moments
    activations = torch.linalg.svdvals(
        square_root(moments.query) @ square_root(moments.query_gradient)
    )
    return weights, activations


def _effective(singular: Float[Tensor, "heads n"]) -> list[float]:
    share = singular.square()
    share = share / share.sum(-1, keepdim=True).clamp(min=1e-300)
    entropy = -(share * share.clamp(min=1e-300).log()).sum(-1)
    return [float(value) for value in entropy.exp()]
