"""Statistics of a sample, the tokens: averages of several dimensions, beside extrema or not."""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import REFUSE, Answer, Tokens, Value, ZooTask, some_noise
from headwise.advise.probe.zoo.tokens import independent, with_flags


def _statistic(
    rng: Generator, about: str, heads: set[Answer], value: Value, dim: int = 1
) -> ZooTask:
    length = int(rng.integers(12, 41))
    tokens = independent(rng, length, dim)
    return ZooTask(f"{about}, length {length}", frozenset(heads), tokens, value, some_noise(rng))


def outlier_scores(rng: Generator) -> ZooTask:
    """(max x − mean x) / deviation of x: one extremum beside one average with v = (x, x²). 2."""

    def value(x: Tensor) -> Tensor:
        sample = x[..., 0]
        return (sample.amax(1) - sample.mean(1)) / sample.std(1, correction=0)

    return _statistic(rng, "how far the largest token lies out", {2}, value)


def studentised_ranges(rng: Generator) -> ZooTask:
    """(max x − min x) / deviation of x: two extrema and one average with v = (x, x²). 3 heads."""

    def value(x: Tensor) -> Tensor:
        sample = x[..., 0]
        return (sample.amax(1) - sample.amin(1)) / sample.std(1, correction=0)

    return _statistic(rng, "range in standard deviations", {3}, value)


def volumes(rng: Generator) -> ZooTask:
    """log det(covariance + 0.1) of tokens in the plane: average with v = (x, y, x², xy, y²). 1."""

    def value(x: Tensor) -> Tensor:
        centred = x - x.mean(1, keepdim=True)
        spread = centred.mT @ centred / x.shape[1]
        return torch.logdet(spread + 0.1 * torch.eye(2, dtype=x.dtype))

    return _statistic(rng, "log-determinant of the covariance", {1}, value, dim=2)


def correlations(rng: Generator) -> ZooTask:
    """The correlation of x and y: a readout of the same average of five dimensions. 1 head."""

    def value(x: Tensor) -> Tensor:
        centred = x - x.mean(1, keepdim=True)
        size = centred.square().mean(1).sqrt().prod(1)
        return centred.prod(2).mean(1) / size

    return _statistic(rng, "correlation of two coordinates", {1}, value, dim=2)


def differences_of_groups(rng: Generator) -> ZooTask:
    """Mean over the tokens with a flag minus mean over those without: one average with v = (flag·x,
    flag, x), of which the readout takes both ratios. One head, though two groups are averaged.
    """
    length, share = int(rng.integers(16, 41)), float(rng.uniform(0.35, 0.65))

    def value(x: Tensor) -> Tensor:
        sample, flag = x.unbind(2)
        flagged = (sample * flag).sum(1) / flag.sum(1).clamp_min(1)
        return flagged - (sample * (1 - flag)).sum(1) / (1 - flag).sum(1).clamp_min(1)

    return ZooTask(
        f"difference of the means of two groups, length {length}",
        frozenset({1}),
        with_flags(length, 1, share),
        value,
        some_noise(rng),
    )


def opposite_softmax_means(rng: Generator) -> ZooTask:
    """Σ softmax(βx) y + g · Σ softmax(−βx) y, β ≤ 1: two heads in appearance. One average with
    v = (e^{βx} y, e^{βx}, e^{−βx} y, e^{−βx}) has all four sums, moderate ones: one head.
    """
    beta, g = float(rng.uniform(0.3, 1)), float(rng.uniform(0.5, 1.5))

    def value(x: Tensor) -> Tensor:
        up, down = (torch.softmax(sign * beta * x[..., 0], 1) for sign in (1, -1))
        return ((up + g * down) * x[..., 1]).sum(1)

    return _statistic(rng, f"two opposite softmax means, β {beta:.2f}", {1}, value, dim=2)


def power_means(rng: Generator) -> ZooTask:
    """(mean |x|^p)^{1/p}, p from 3 to 8: average with v = |x|^p, one head. For large p it is steep,
    as a soft maximum is: a refusal is right above 4.
    """
    p = float(rng.uniform(3, 8))
    heads: set[Answer] = {1} if p < 4 else {1, REFUSE}
    return _statistic(
        rng,
        f"power mean, p {p:.1f}",
        heads,
        lambda x: x[..., 0].abs().pow(p).mean(1).pow(1 / p),
    )


def trimmed_means(rng: Generator) -> ZooTask:
    """Mean of the middle half of the tokens: as a quantile it is a readout of the averages of many
    ramps, of which eight dimensions hold eight: 1 or a refusal.
    """

    def value(x: Tensor) -> Tensor:
        count = x.shape[1]
        middle = x[..., 0].sort(1).values[:, count // 4 : count - count // 4]
        return middle.mean(1)

    return _statistic(rng, "mean of the middle half", {1, REFUSE}, value)


def _of_kinds(length: int, kinds: int) -> Tokens:
    """A Gaussian coordinate, and the kind of the token, one-hot."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        kind = np.eye(kinds)[rng.integers(kinds, size=(count, length))]
        return np.concatenate([rng.standard_normal((count, length, 1)), kind], 2)

    return draw


def maxima_by_kind(rng: Generator) -> ZooTask:
    """Σ_k w_k max of x over the tokens of kind k, of 2 or 3 kinds: as many extrema, of features
    x + g·[kind = k] that are attained at different tokens, and as many heads.
    """
    length, kinds = int(rng.integers(20, 41)), int(rng.integers(2, 4))
    weights = torch.from_numpy(rng.uniform(0.6, 1.4, kinds) * rng.choice([-1.0, 1.0], kinds))

    def value(x: Tensor) -> Tensor:
        best = (x[..., :1] - 20 * (1 - x[..., 1:])).amax(1)
        return best.clamp_min(-3) @ weights

    return ZooTask(
        f"maxima of {kinds} kinds of tokens, length {length}",
        frozenset({kinds}),
        _of_kinds(length, kinds),
        value,
        some_noise(rng),
    )


def kurtoses(rng: Generator) -> ZooTask:
    """The fourth central moment over the squared variance: average with v = (x, x², x³, x⁴), one
    head. Its tails are heavy, so that a refusal is right as well.
    """

    def value(x: Tensor) -> Tensor:
        centred = x[..., 0] - x[..., 0].mean(1, keepdim=True)
        return centred.pow(4).mean(1) / centred.square().mean(1).square()

    return _statistic(rng, "kurtosis", {1, REFUSE}, value)


def mean_differences(rng: Generator) -> ZooTask:
    """mean_{s,t} |x_s − x_t|, Gini's: twice the integral of F(1 − F), F the share below x, so
    a readout of the averages of many ramps, as a quantile is: 1 or a refusal.
    """

    def value(x: Tensor) -> Tensor:
        return (x[..., 0][:, :, None] - x[..., 0][:, None]).abs().mean((1, 2))

    return _statistic(rng, "mean difference of two tokens", {1, REFUSE}, value)


def products_of_choices(rng: Generator) -> ZooTask:
    """u·v, u the token with the largest x and v that with the largest y: two choices at different
    tokens, two heads. It jumps where tokens tie: a refusal is right as well.
    """

    def value(x: Tensor) -> Tensor:
        chosen = x[..., :2].argmax(1)
        one, other = (
            torch.gather(x[..., 2:], 1, chosen[:, i, None, None].expand(-1, 1, 2))[:, 0]
            for i in (0, 1)
        )
        return (one * other).sum(1)

    return _statistic(rng, "product of the tokens with max x and max y", {2, REFUSE}, value, dim=4)


CLASSES = (
    outlier_scores,
    studentised_ranges,
    volumes,
    correlations,
    differences_of_groups,
    opposite_softmax_means,
    power_means,
    trimmed_means,
    maxima_by_kind,
    kurtoses,
    mean_differences,
    products_of_choices,
)
