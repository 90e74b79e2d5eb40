"""What every size of every head costs: predicted, then corrected by real attention.

The moments' prediction is linear in the scores, and a saturated softmax is flat: it would call a
head free whose attention rests on a few large scores. So a forward pass recomputes real attention
at several ranks and corrects each curve by what it finds.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtri  # scipy.stats takes a second to import
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.moments import LayerMoments
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.plan.reductions import Factor, LayerReductions, score_maps, square_root
from headwise.pretrained.text.calibration import few_tokens

Curve = Float[np.ndarray, " sizes"]

_LEVELS = 7  # ranks at which real attention is recomputed
_RECHECK_TOKENS, _RECHECK_LENGTH = 2048, 256  # attention recomputed costs the length squared


@dataclass
class LayerCurves:
    """Damage by size, in the objective's unit: index = dimension left (pairs: 2 × pairs)."""

    values: list[Curve]  # per key group
    queries: list[Curve]  # per key group; with RoPE only even sizes are meant
    query_factor: Float[np.ndarray, " query_ranks"] | None
    key_factor: Float[np.ndarray, " key_ranks"] | None
    removal: Float[np.ndarray, " heads"]  # per query head


def checked_curves(
    model: nn.Module,
    sites: list[AttentionSite],
    reductions: list[LayerReductions],
    batches: list[dict[str, Tensor]],
    on_progress: OnProgress = quiet,
) -> list[LayerCurves]:
    """Every layer's curves, corrected on a few of the batches."""
    checks = [_Check(*parts) for parts in zip(sites, reductions, strict=True)]
    some = few_tokens(batches, _RECHECK_TOKENS, _RECHECK_LENGTH)
    observe(model, sites, some, lambda layer, seen: checks[layer].look(seen), on_progress)
    return [check.curves() for check in checks]


def _levels(size: int, even: bool) -> list[int]:
    step = 2 if even else 1
    inner = np.linspace(0, size, _LEVELS + 2)[1:-1]
    return sorted({max(step, round(level / step) * step) for level in inner})


class _Check:
    """Real damage of reduced queries and keys in one layer: ½ E‖G_c^{1/2} Δcontext‖² by head."""

    def __init__(self, site: AttentionSite, reductions: LayerReductions) -> None:
        self.site, self.reductions = site, reductions
        moments = reductions.moments
        self.metric = square_root(moments.context_gradient).float()
        self.tokens = 0
        self.levels = _levels(site.head_dim, site.rotary)
        self.maps = torch.stack(
            [score_maps(site, reductions, [dim] * site.kv_heads) for dim in self.levels]
        ).float()
        self.sums = torch.zeros(len(self.levels), site.heads, dtype=torch.float64)
        self.factors: dict[str, tuple[list[int], Tensor, Tensor]] = {}
        for role in ("query", "key") if site.rotary else ():
            factor: Factor = getattr(reductions, f"{role}_factor")
            ranks = _levels(factor.into.shape[0] // 2, even=False)
            maps = torch.stack([factor.back[:, :r] @ factor.into[:r] for r in ranks]).float()
            affine = getattr(reductions.weights, role)
            mean = affine.weight.double() @ moments.input_mean
            if affine.bias is not None:
                mean = mean + affine.bias
            self.factors[role] = (ranks, maps, mean.float())
        self.factor_sums = {
            role: torch.zeros(len(ranks), dtype=torch.float64)
            for role, (ranks, _, _) in self.factors.items()
        }

    def look(self, seen: Observed) -> None:
        """Add what one batch shows."""
        context = seen.attend(seen.scores().softmax(-1))
        self.tokens += context.shape[0] * context.shape[2]

        def damage(query: Tensor | None, key: Tensor | None) -> Float[Tensor, " heads"]:
            change = seen.attend(seen.scores(query, key).softmax(-1)) - context
            return (change @ self.metric).square().sum((0, 2, 3)).double() / 2

        for index, maps in enumerate(self.maps):
            self.sums[index] += damage(seen.query @ maps.mT, None)
        for role, (_, maps, mean) in self.factors.items():
            flat = seen.projected[role].transpose(1, 2).flatten(2) - mean
            for index, one in enumerate(maps):
                reduced = flat @ one.mT + mean
                heads = reduced.unflatten(-1, (-1, self.site.head_dim)).transpose(1, 2)
                changed = seen.normed(role, heads)
                pair = (changed, None) if role == "query" else (None, changed)
                self.factor_sums[role][index] += damage(*pair).sum()

    def curves(self) -> LayerCurves:
        """The layer's curves, from all that was seen."""
        site, reductions = self.site, self.reductions
        groups = (site.kv_heads, site.group_size)
        measured = torch.unflatten(self.sums / self.tokens, 1, groups).sum(2)
        queries = []
        for group in range(site.kv_heads):
            if reductions.pairs is None:
                assert reductions.queries is not None
                predicted = reductions.queries.damage[group].numpy()
            else:
                by_pairs = reductions.pairs[group].damage.numpy()
                predicted = np.repeat(by_pairs, 2)[:-1]
            queries.append(corrected(predicted, self.levels, measured[:, group].numpy()))
        factors: dict[str, Curve | None] = {"query": None, "key": None}
        for role, (ranks, _, _) in self.factors.items():
            found = (self.factor_sums[role] / self.tokens).numpy()
            predicted = getattr(reductions, f"{role}_factor").damage.numpy()
            factors[role] = corrected(predicted, ranks, found)
        return LayerCurves(
            values=[curve.numpy() for curve in reductions.values.damage],
            queries=queries,
            query_factor=factors["query"],
            key_factor=factors["key"],
            removal=removal_losses(reductions.moments),
        )


def removal_losses(moments: LayerMoments) -> Float[np.ndarray, " heads"]:
    """What replacing a head's context by its mean costs: ½ σ² of the score's change a stretch.

    σ² is that of the normal change s with the E[log(1 + s²)] that was seen: E[s²] if s is normal,
    and hardly moved by a few stretches whose gradients promise far too much (see `moments`).
    """
    normal = ndtri((np.arange(4096) + 0.5) / 4096)
    variances = np.geomspace(1e-9, 1e12, 200)
    known = np.log1p(np.outer(variances, normal**2)).mean(1)
    seen = moments.change.numpy()
    between = np.interp(np.log(np.maximum(seen, known[0])), np.log(known), np.log(variances))
    variance = np.where(seen > known[0], np.exp(between), seen)  # of a tiny s, log(1 + s²) = s²
    return np.asarray(variance / 2 * float(moments.stretches))


def corrected(predicted: Curve, levels: list[int], measured: Float[np.ndarray, " levels"]) -> Curve:
    """The predicted curve, raised to what was measured where that is more; monotone.

    Between measured levels the ratio of the two is interpolated on a logarithmic scale. Losses
    below zero are rounding.
    """
    predicted, measured = predicted.clip(min=0.0), measured.clip(min=0.0)
    tiny = max(float(predicted.max()), 1e-300) * 1e-12
    ratio = np.log((measured + tiny) / (predicted[levels] + tiny)).clip(min=0.0)
    everywhere = np.exp(np.interp(np.arange(len(predicted)), levels, ratio)) * predicted
    monotone: Curve = np.maximum.accumulate(everywhere[::-1])[::-1]
    return monotone
