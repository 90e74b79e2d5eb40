"""Targets that compare tokens with each other: beyond one layer, so a refusal is right.

A head's scores at the class token are functions of single tokens. A function of which pairs of
tokens fit together is therefore no function of a few choices and averages: a head would have to
copy the sequence (T·d dimensions; here T·d is above 8 by far). With h heads as many special cases
can be covered, so the error falls slowly with h and no number is right. Two layers do it: the
first compares, the second collects.
"""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import REFUSE, Tokens, Value, ZooTask, right
from headwise.advise.probe.zoo.tokens import independent, one_hot


def _of_pairs(
    about: str, length: int, tokens: Tokens, value: Value, labels: bool = False
) -> ZooTask:
    return ZooTask(f"{about}, length {length}", right(REFUSE), tokens, value, labels=labels)


def induction(rng: Generator) -> ZooTask:
    """The symbol after the previous occurrence of the last symbol: the score of a token depends on
    the token before it and on the last one; two layers.
    """
    length, symbols = int(rng.integers(14, 33)), int(rng.integers(4, 9))
    weights = torch.arange(1, symbols + 1, dtype=torch.float64)

    def value(x: Tensor) -> Tensor:
        same = (x[:, :-2] * x[:, -1:]).sum(-1)  # tokens 0 … T − 3 that equal the last
        t = torch.arange(length - 2, dtype=x.dtype) + 1
        place = (same * t).argmax(1)
        following = x[torch.arange(len(x)), place + 1] @ weights
        return (following * same.any(1)).long()

    return _of_pairs(
        f"induction over {symbols} symbols, a label",
        length,
        one_hot(length, symbols),
        value,
        labels=True,
    )


def neighbours_of_first(rng: Generator) -> ZooTask:
    """The value of the token nearest to the first, in d dimensions: the score x_1·x_t pairs two
    tokens (and needs rank d in a layer whose queries are tokens).
    """
    length, d = int(rng.integers(12, 33)), int(rng.integers(2, 5))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        inputs = rng.standard_normal((count, length, d + 1))
        inputs[..., :d] /= np.linalg.norm(inputs[..., :d], axis=-1, keepdims=True)
        return inputs

    def value(x: Tensor) -> Tensor:
        scores = (x[:, 1:, :d] * x[:, :1, :d]).sum(-1)
        return torch.gather(x[:, 1:, d], 1, scores.argmax(1)[:, None])[:, 0]

    return _of_pairs(f"value of the neighbour of the first, {d} dimensions", length, tokens, value)


def pointers(rng: Generator) -> ZooTask:
    """x at the position that the first token names: the choice depends on another token."""
    length = int(rng.integers(12, 33))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        inputs = rng.standard_normal((count, length, 2))
        inputs[..., 1] = rng.integers(1, length, (count, length)) / length
        return inputs

    def value(x: Tensor) -> Tensor:
        place = (x[:, 0, 1] * length).round().long()
        return torch.gather(x[..., 0], 1, place[:, None])[:, 0]

    return _of_pairs("token at the place that the first names", length, tokens, value)


def neighbouring_products(rng: Generator) -> ZooTask:
    """Σ_t x_t x_{t+1}, or its largest term: a quadratic form of rank about T in the sequence."""
    length, largest = int(rng.integers(16, 33)), bool(rng.random() < 0.5)

    def value(x: Tensor) -> Tensor:
        terms = x[:, 1:, 0] * x[:, :-1, 0]
        return terms.amax(1) if largest else terms.sum(1)

    about = f"{'largest' if largest else 'sum'} of products of neighbours"
    return _of_pairs(about, length, independent(rng, length, 1), value)


def longest_runs(rng: Generator) -> ZooTask:
    """The longest run of equal signs: whether a token continues a run depends on the one before."""
    length = int(rng.integers(16, 33))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], (count, length, 1))

    def value(x: Tensor) -> Tensor:
        run = best = torch.ones(len(x), dtype=torch.float64)
        for t in range(1, x.shape[1]):
            run = torch.where(x[:, t, 0] * x[:, t - 1, 0] > 0, run + 1, torch.ones_like(run))
            best = torch.maximum(best, run)
        return best

    return _of_pairs("longest run of signs", length, tokens, value)


def closest_pairs(rng: Generator) -> ZooTask:
    """min over pairs of |x_s − x_t|, in the plane: which tokens are close is no score of one."""
    length = int(rng.integers(12, 25))

    def value(x: Tensor) -> Tensor:
        gaps = (x[:, :, None] - x[:, None]).square().sum(-1)
        return (gaps + 1e9 * torch.eye(x.shape[1], dtype=x.dtype)).amin((1, 2)).sqrt()

    return _of_pairs("distance of the closest pair", length, independent(rng, length, 2), value)


def inversions(rng: Generator) -> ZooTask:
    """Pairs in the wrong order, as a share: every pair is compared. 1 or a refusal.

    Its projection on functions of single tokens (Hoeffding) is an average of x and t and explains
    1 − O(1/T) of the variance: one head gives that much, none more; the rest looks like noise.
    """
    length = int(rng.integers(12, 25))

    def value(x: Tensor) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.float64).triu(1)
        return ((x[:, :, None, 0] > x[:, None, :, 0]) * later).sum((1, 2)) / later.sum()

    tokens = independent(rng, length, 1)
    return ZooTask(f"share of inversions, length {length}", right(1, REFUSE), tokens, value)


def highest_points(rng: Generator) -> ZooTask:
    """max_t Σ_{s ≤ t} x_s, the highest point of a walk: the largest of T linear forms, none of them
    a combination of others and each the largest in some sequences. Heads times value dimensions
    must reach T ≥ 25, more than the probe's narrow heads hold; fewer only summarise the walk.
    """
    length = int(rng.integers(25, 41))
    return ZooTask(
        f"highest point of a walk of {length} steps",
        right(REFUSE),
        independent(rng, length, 1),
        lambda x: x[..., 0].cumsum(1).amax(1),
    )


def mean_widths(rng: Generator) -> ZooTask:
    """Mean over 24 directions in the plane of max_t u·x_t: 24 extrema, neighbours nearly equal, so
    that the error falls gradually with the heads; more than the probe tries, so a refusal.
    """
    length = int(rng.integers(16, 41))
    angles = torch.arange(24, dtype=torch.float64) * (2 * torch.pi / 24)
    u = torch.stack([angles.cos(), angles.sin()])
    return _of_pairs(
        "mean width of the hull in the plane",
        length,
        independent(rng, length, 2),
        lambda x: (x @ u).amax(1).mean(1),
    )


def sums_of_neighbours(rng: Generator) -> ZooTask:
    """max_t (x_t + x_{t+1}): the largest of T − 1 ≥ 15 linear forms, each of two tokens that no
    score of one of them finds; as for `highest_points`, fewer forms than tokens only summarise.
    """
    length = int(rng.integers(16, 33))
    return _of_pairs(
        "largest sum of neighbours",
        length,
        independent(rng, length, 1),
        lambda x: (x[:, 1:, 0] + x[:, :-1, 0]).amax(1),
    )


def local_maxima(rng: Generator) -> ZooTask:
    """How many tokens are larger than both neighbours: three tokens decide each. A refusal."""
    length = int(rng.integers(16, 33))

    def value(x: Tensor) -> Tensor:
        left, here, right_of = x[:, :-2, 0], x[:, 1:-1, 0], x[:, 2:, 0]
        return ((here > left) & (here > right_of)).double().sum(1)

    return _of_pairs("number of local maxima", length, independent(rng, length, 1), value)


def diameters(rng: Generator) -> ZooTask:
    """max over pairs of |x_s − x_t| in the plane: the mean over directions has all extrema of the
    hull in it, and which pair counts is no score of one token. A refusal.
    """
    length = int(rng.integers(12, 41))
    return _of_pairs(
        "largest distance of two tokens",
        length,
        independent(rng, length, 2),
        lambda x: torch.cdist(x, x).amax((1, 2)),
    )


def mean_records(rng: Generator) -> ZooTask:
    """mean_t max_{s ≤ t} x_s: T extrema over nested sets of positions, neighbours nearly equal, so
    that the error falls gradually with the heads. A refusal.
    """
    length = int(rng.integers(16, 33))
    return _of_pairs(
        "mean of the record so far",
        length,
        independent(rng, length, 1),
        lambda x: x[..., 0].cummax(1).values.mean(1),
    )


CLASSES = (
    induction,
    neighbours_of_first,
    pointers,
    neighbouring_products,
    longest_runs,
    closest_pairs,
    inversions,
    highest_points,
    mean_widths,
    sums_of_neighbours,
    local_maxima,
    diameters,
    mean_records,
)
