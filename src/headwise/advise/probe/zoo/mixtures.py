"""Averages and extrema together, and extrema beyond the first."""

import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.extrema import weighted_maxima
from headwise.advise.probe.zoo.task import REFUSE, Answer, Value, ZooTask, some_noise
from headwise.advise.probe.zoo.tokens import independent


def _on_gaussian(rng: Generator, about: str, heads: set[Answer], value: Value) -> ZooTask:
    length = int(rng.integers(12, 41))
    return ZooTask(
        f"{about}, length {length}",
        frozenset(heads),
        independent(rng, length, 3),
        value,
        some_noise(rng),
    )


def maxima_and_means(rng: Generator) -> ZooTask:
    """D ≤ 2 maxima plus a mean of another feature: D + 1 heads, by the facts apart and extrema.

    Both parts have about the same variance. One soft head could carry both to a coarse accuracy,
    never to a fine one: what it reads the mean from shrinks like e^{−β gap}.
    """
    count = int(rng.integers(1, 3))
    maxima = weighted_maxima(rng, count, 2)

    def value(x: Tensor) -> Tensor:
        mean = torch.sin(1.5 * x[..., 2]).mean(1) * x.shape[1] ** 0.5
        return maxima(x) + 0.7 * mean

    return _on_gaussian(rng, f"{count} maxima + mean", {count + 1}, value)


def maxima_times_means(rng: Generator) -> ZooTask:
    """max_t x · mean_t y: one extremum and one average need two heads."""
    return _on_gaussian(
        rng,
        "max x · (1 + mean y)",
        {2},
        lambda x: x[..., 0].amax(1) * (1 + x[..., 1].mean(1) * x.shape[1] ** 0.5),
    )


def extrema_beside_their_mean(rng: Generator) -> ZooTask:
    """max x − mean x of the same feature: still an extremum and an average, two heads."""
    return _on_gaussian(
        rng,
        "max x − mean x, both in standard units",
        {2},
        lambda x: 2 * x[..., 0].amax(1) - x[..., 0].mean(1) * x.shape[1] ** 0.5,
    )


def midranges_and_means(rng: Generator) -> ZooTask:
    """(max x + min x) · mean y: two extrema and an average need three heads."""
    return _on_gaussian(
        rng,
        "(1 + max x + min x) · (1 + mean y)",
        {3},
        lambda x: (
            (1 + x[..., 0].amax(1) + x[..., 0].amin(1))
            * (1 + 0.7 * x[..., 1].mean(1) * x.shape[1] ** 0.5)
        ),
    )


def top_two_gaps(rng: Generator) -> ZooTask:
    """x₍₁₎ − x₍₂₎: not one head, since the target changes with two tokens that no score tells apart
    in advance. Whether two suffice is open: 2⌈log₂ T⌉ do (for every bit of the position the maxima
    over both halves; x₍₂₎ is the largest of the smaller ones). 2 or a refusal; no other number has
    a proof.
    """

    def value(x: Tensor) -> Tensor:
        first, second = x[..., 0].topk(2, 1).values.unbind(1)
        return first - second

    return _on_gaussian(rng, "gap between the two largest", {2, REFUSE}, value)


def second_largest(rng: Generator) -> ZooTask:
    """x₍₂₎: one token matters at a time, but no score of single tokens chooses it: not one head.

    As for `top_two_gaps`, 2 or a refusal.
    """
    return _on_gaussian(
        rng, "second largest", {2, REFUSE}, lambda x: x[..., 0].topk(2, 1).values[:, 1]
    )


def sums_of_largest(rng: Generator) -> ZooTask:
    """The mean of the k = 3 to 5 largest: min over c of c + (1/k) Σ relu(x_t − c), so as a trimmed
    mean a readout of the averages of many ramps, of which eight dimensions hold eight. The error
    falls gradually with heads of different temperatures: 1 or a refusal.
    """
    k = int(rng.integers(3, 6))
    return _on_gaussian(
        rng, f"mean of the {k} largest", {1, REFUSE}, lambda x: x[..., 0].topk(k, 1).values.mean(1)
    )


def third_largest(rng: Generator) -> ZooTask:
    """x₍₃₎: as for `second_largest` no score chooses it, and no number of heads has a proof."""
    return _on_gaussian(rng, "third largest", {REFUSE}, lambda x: x[..., 0].topk(3, 1).values[:, 2])


def sums_without_extremes(rng: Generator) -> ZooTask:
    """Σ x − max x − min x: an average and two extrema, three heads. One in principle, too: as a
    trimmed mean it is a readout of the averages of many ramps, which need not resolve the extrema
    well, as they are a few hundredths of the variance. The error falls gradually: or a refusal.
    """
    return _on_gaussian(
        rng,
        "sum without the largest and the smallest",
        {1, 3, REFUSE},
        lambda x: x[..., 0].sum(1) - x[..., 0].amax(1) - x[..., 0].amin(1),
    )


def gated_by_mean(rng: Generator) -> ZooTask:
    """max y or max z by the sign of the mean of x: an average and two extrema that matter, three
    heads; the target jumps where the mean is zero: a refusal is right as well.
    """

    def value(x: Tensor) -> Tensor:
        best = x[..., 1:3].amax(1)
        return torch.where(x[..., 0].mean(1) > 0, best[:, 0], best[:, 1])

    return _on_gaussian(rng, "max y or max z by the sign of mean x", {3, REFUSE}, value)


def two_soft_maxima(rng: Generator) -> ZooTask:
    """log-sum-exp of βx plus that of βy, β from 10 to 40: one average of e^{βx} and e^{βy} each, or
    one choice each where β is large. One head with both, or two; the slope between is gradual, so
    a refusal is right as well, and three is not.
    """
    beta = float(rng.uniform(10, 40))
    return _on_gaussian(
        rng,
        f"two soft maxima, β {beta:.0f}",
        {1, 2, REFUSE},
        lambda x: torch.logsumexp(beta * x[..., :2], 1).sum(1) / beta,
    )


CLASSES = (
    maxima_and_means,
    maxima_times_means,
    extrema_beside_their_mean,
    midranges_and_means,
    top_two_gaps,
    second_largest,
    sums_of_largest,
    third_largest,
    sums_without_extremes,
    gated_by_mean,
    two_soft_maxima,
)
