"""Targets that see the sequence through extremal tokens."""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.trials import directions, draw_trial
from headwise.advise.probe.zoo.task import REFUSE, Tokens, Value, ZooTask, right, some_noise
from headwise.advise.probe.zoo.tokens import independent, with_flags


def weighted_maxima(rng: Generator, count: int, token_dim: int) -> Value:
    """Σ w_i max_t a_i·x_t with directions far apart: by the fact of extrema it needs `count`."""
    a = torch.from_numpy(directions(rng, count, token_dim))
    w = torch.from_numpy(rng.uniform(0.5, 1.5, count) * rng.choice([-1.0, 1.0], count))
    return lambda x: (x[..., :token_dim] @ a.T).amax(1) @ w


def _extremal(rng: Generator, least_dim: int = 1) -> tuple[Tokens, str, int]:
    length, token_dim = int(rng.integers(10, 49)), int(rng.integers(least_dim, least_dim + 3))
    words = f"length {length}, token_dim {token_dim}"
    return independent(rng, length, token_dim), words, token_dim


def retrieval(rng: Generator) -> ZooTask:
    """The generalised retrieval tasks of `trials.py`: D extrema of features far apart need D."""
    trial = draw_trial(int(rng.integers(1 << 31)), 0)

    def tokens(rng: Generator, count: int) -> np.ndarray:
        inputs, _ = trial.task.sample(count, (int(rng.integers(1 << 31)),))
        return inputs.double().numpy()

    about, _, _ = str(trial).rpartition(", noise")
    return ZooTask(about, right(trial.intrinsic_dim), tokens, trial.task.oracle, trial.noise)


def ranges(rng: Generator) -> ZooTask:
    """Σ or Π over k ≤ 2 coordinates of max − min: 2k extrema at different tokens need 2k heads."""
    k = int(rng.integers(1, 3))
    tokens, words, _ = _extremal(rng, least_dim=k)
    product = k == 2 and rng.random() < 0.5

    def value(x: Tensor) -> Tensor:
        spans = x[..., :k].amax(1) - x[..., :k].amin(1)
        return spans.prod(1) if product else spans.sum(1)

    about = f"{'product' if product else 'sum'} of {k} ranges, {words}"
    return ZooTask(about, right(2 * k), tokens, value, some_noise(rng))


def unequal_maxima(rng: Generator) -> ZooTask:
    """max_t x + w max_t y, w from 0.003 to 0.05: two extrema need two heads, however small w is.

    The second is w²/(1 + w²) of the target's variance, which data may not show: a refusal is right
    as well. One head leaves this share (the second maximum replaced by its mean) and no more, so
    that one is right for an answer that says that it does not see so little.
    """
    tokens, words, _ = _extremal(rng, least_dim=2)
    w = float(10 ** rng.uniform(-2.5, -1.3))
    return ZooTask(
        f"two maxima with weights 1 and {w:.3f}, {words}",
        right(2, REFUSE),
        tokens,
        lambda x: x[..., 0].amax(1) + w * x[..., 1].amax(1),
        coarsely=(w**2 / (1 + w**2), 1),
    )


def largest_norms(rng: Generator) -> ZooTask:
    """max_t |x_t − c|, or the value y of the token nearest to a fixed c: one choice, one head."""
    tokens, words, _ = _extremal(rng, least_dim=3)
    c = torch.from_numpy(0.5 * rng.standard_normal(2))
    nearest = rng.random() < 0.5

    def value(x: Tensor) -> Tensor:
        distance = (x[..., :2] - c).norm(dim=-1)
        if not nearest:
            return distance.amax(1)
        chosen = distance.argmin(1)
        return torch.gather(x[..., 2], 1, chosen[:, None])[:, 0]

    about = "value of the token nearest to a point" if nearest else "distance of the farthest token"
    return ZooTask(f"{about}, {words}", right(1), tokens, value, some_noise(rng))


def maxima_of_maxima(rng: Generator) -> ZooTask:
    """max(max_t x, max_t y) = max_t max(x, y): two extrema in appearance, one head."""
    tokens, words, dims = _extremal(rng, least_dim=2)
    return ZooTask(
        f"largest of all {dims} coordinates, {words}",
        right(1),
        tokens,
        lambda x: x.amax((1, 2)),
        some_noise(rng),
    )


def minima_of_maxima(rng: Generator) -> ZooTask:
    """min(max_t x, max_t y), each the smaller in half of the sequences: two extrema, two heads.

    The minimum is no function of one token's choice: with one head, take sequences in which its
    most responsive token is not the one that attains the smaller maximum.
    """
    tokens, words, _ = _extremal(rng, least_dim=2)
    return ZooTask(
        f"smaller of two maxima, {words}",
        right(2),
        tokens,
        lambda x: x[..., :2].amax(1).amin(1),
        some_noise(rng),
    )


def ratios_of_extrema(rng: Generator) -> ZooTask:
    """(1 + max_t x) / (4 + 2 tanh(1 + min_t y)): two extrema that both matter need two heads."""
    tokens, words, _ = _extremal(rng, least_dim=2)
    return ZooTask(
        f"max x over a function of min y, {words}",
        right(2),
        tokens,
        lambda x: (1 + x[..., 0].amax(1)) / (4 + torch.tanh(1 + x[..., 1].amin(1)) * 2),
        some_noise(rng),
    )


def flagged_maxima(rng: Generator) -> ZooTask:
    """max of x over the tokens with a flag: a choice with score x + g·flag, g > the range of x."""
    length = int(rng.integers(12, 49))
    tokens = with_flags(length, 1, float(rng.uniform(0.3, 0.8)))
    return ZooTask(
        f"largest flagged token, length {length}",
        right(1),
        tokens,
        lambda x: (x[..., 0] - 20 * (1 - x[..., 1])).amax(1).clamp_min(-4),
        some_noise(rng),
    )


def switched_maxima(rng: Generator) -> ZooTask:
    """max_t x or max_t y, as a flag that all tokens of the sequence carry says: one head.

    Score and value are flag·x + (1 − flag)·y: the flag is in every token, so one choice will do.
    """
    length = int(rng.integers(12, 41))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        inputs = rng.standard_normal((count, length, 3))
        inputs[..., 2] = rng.integers(2, size=(count, 1))
        return inputs

    return ZooTask(
        f"max x or max y by a flag in all tokens, length {length}",
        right(1),
        tokens,
        lambda x: (x[..., 2] * x[..., 0] + (1 - x[..., 2]) * x[..., 1]).amax(1),
        some_noise(rng),
    )


def largest_smaller_coordinate(rng: Generator) -> ZooTask:
    """max_t min(x, y): the choice of a token by the smaller of its coordinates, one head."""
    tokens, words, _ = _extremal(rng, least_dim=2)
    return ZooTask(
        f"largest of the smaller coordinates, {words}",
        right(1),
        tokens,
        lambda x: x[..., :2].amin(2).amax(1),
        some_noise(rng),
    )


def crossed_choices(rng: Generator) -> ZooTask:
    """y of the token with the largest x plus x of the one with the largest y: two choices, at
    different tokens, two heads. The target jumps where two tokens tie: a refusal is right as well.
    """
    tokens, words, _ = _extremal(rng, least_dim=2)

    def value(x: Tensor) -> Tensor:
        chosen = x[..., :2].argmax(1)
        there = [torch.gather(x[..., 1 - i], 1, chosen[:, i : i + 1])[:, 0] for i in (0, 1)]
        return there[0] + there[1]

    return ZooTask(f"y at max x + x at max y, {words}", right(2, REFUSE), tokens, value)


def saturated_extrema(rng: Generator) -> ZooTask:
    """tanh(max x − 1.5) + tanh(2 + min y), both often near their bounds: two extrema need two
    heads wherever both matter.
    """
    tokens, words, _ = _extremal(rng, least_dim=2)
    return ZooTask(
        f"saturated max x and min y, {words}",
        right(2),
        tokens,
        lambda x: torch.tanh(x[..., 0].amax(1) - 1.5) + torch.tanh(2 + x[..., 1].amin(1)),
        some_noise(rng),
    )


def too_many_maxima(rng: Generator) -> ZooTask:
    """14 to 16 maxima: more heads than the probe tries by default, so that it must say so."""
    count, token_dim = int(rng.integers(14, 17)), 8
    length = int(rng.integers(48, 65))
    tokens = independent(rng, length, token_dim)
    value = weighted_maxima(rng, count, token_dim)
    return ZooTask(
        f"{count} maxima, length {length}", right(count, REFUSE), tokens, value, some_noise(rng)
    )


CLASSES = (
    retrieval,
    ranges,
    unequal_maxima,
    largest_norms,
    maxima_of_maxima,
    minima_of_maxima,
    ratios_of_extrema,
    flagged_maxima,
    switched_maxima,
    largest_smaller_coordinate,
    crossed_choices,
    saturated_extrema,
    too_many_maxima,
)
