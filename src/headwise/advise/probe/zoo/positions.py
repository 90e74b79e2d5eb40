"""Targets that depend on the order of the tokens, within the reach of one layer."""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import REFUSE, Answer, Value, ZooTask, some_noise
from headwise.advise.probe.zoo.tokens import independent, with_flags


def _ordered(rng: Generator, about: str, heads: set[Answer], value: Value, dim: int = 2) -> ZooTask:
    length = int(rng.integers(10, 33))
    words = f"{about}, length {length}"
    tokens = independent(rng, length, dim)
    return ZooTask(words, frozenset(heads), tokens, value, some_noise(rng))


def first_times_last(rng: Generator) -> ZooTask:
    """x_1 · x_T. Two heads that choose by position; or one with two value dimensions, the average
    of (x[t = 1], x[t = T]). Both numbers are right: the first for heads of one dimension.
    """
    return _ordered(
        rng, "first · last token", {1, 2}, lambda x: (1 + x[:, 0, 0]) * (1 + x[:, -1, 0])
    )


def last_minus_first(rng: Generator) -> ZooTask:
    """f(x_T) − f(x_1): an average with v = f(x)([t = T] − [t = 1]), or two heads that choose."""
    return _ordered(
        rng, "last − first", {1, 2}, lambda x: torch.sin(x[:, -1, 0]) - torch.sin(x[:, 0, 0])
    )


def one_position(rng: Generator) -> ZooTask:
    """A function of one token at a fixed position: one choice, one head."""
    place = int(rng.integers(0, 10))
    return _ordered(
        rng,
        f"|token| at position {place}",
        {1},
        lambda x: x[:, place].square().sum(1).sqrt(),
    )


def half_sums(rng: Generator) -> ZooTask:
    """Σ over half of the positions, or every k-th: average with v = x·[t in the set], one head."""
    k = int(rng.integers(1, 5))

    def value(x: Tensor) -> Tensor:
        part = x[:, : x.shape[1] // 2] if k == 1 else x[:, ::k]
        return torch.tanh(part[..., 0]).sum(1)

    about = "sum over the first half" if k == 1 else f"sum over every {k}th position"
    return _ordered(rng, about, {1}, value)


def weights_by_position(rng: Generator) -> ZooTask:
    """Σ w_t x_t with w a decay, a ramp or a wave of t: average with v = w_t x, one head."""
    name = str(rng.choice(["decay", "ramp", "wave"]))
    rate = float(rng.uniform(0.5, 2))

    def value(x: Tensor) -> Tensor:
        t = torch.linspace(0, 1, x.shape[1], dtype=x.dtype)
        w = {"decay": torch.exp(-3 * rate * t), "ramp": 2 * t - 1, "wave": torch.cos(6 * rate * t)}
        return x[..., 0] @ w[name]

    return _ordered(rng, f"weighted by a {name} of the position", {1}, value)


def maxima_by_halves(rng: Generator) -> ZooTask:
    """max over the first half and max over the second, summed or multiplied: two extrema over sets
    of T/2 positions need two heads.
    """
    product = rng.random() < 0.5

    def value(x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        first, second = x[:, :half, 0].amax(1), x[:, half:, 0].amax(1)
        return (1 + first) * (1 + second) if product else first + second

    return _ordered(rng, f"{'product' if product else 'sum'} of maxima by halves", {2}, value)


def fading_maxima(rng: Generator) -> ZooTask:
    """max_t (x_t − λ t/T): a choice with a score of content and position, one head."""
    rate = float(rng.uniform(0.5, 3))

    def value(x: Tensor) -> Tensor:
        t = torch.linspace(0, 1, x.shape[1], dtype=x.dtype)
        return (x[..., 0] - rate * t).amax(1)

    return _ordered(rng, f"max of x − {rate:.2f} t/T", {1}, value)


def largest_windows(rng: Generator) -> ZooTask:
    """max over k = 2 to 4 disjoint windows of their sums. One head of k value dimensions holds the
    sums (average with v_j = x[t in window j]), k heads of one dimension do; every number from 1
    to k is right for some width. A refusal is not: it is linear before the readout.
    """
    k = int(rng.integers(2, 5))

    def value(x: Tensor) -> Tensor:
        sums = [part[..., 0].sum(1) for part in torch.tensor_split(x, k, 1)]
        return torch.stack(sums, 1).amax(1)

    return _ordered(rng, f"largest of {k} window sums", set(range(1, k + 1)), value)


def distances_of_extrema(rng: Generator) -> ZooTask:
    """|position of the max − position of the min|: two choices with the position as value. 2 heads.

    The target jumps where two tokens tie, so that a refusal is right as well.
    """

    def value(x: Tensor) -> Tensor:
        return (x[..., 0].argmax(1) - x[..., 0].argmin(1)).abs().double()

    return _ordered(rng, "distance between argmax and argmin", {2, REFUSE}, value, dim=1)


def last_flagged(rng: Generator) -> ZooTask:
    """The value of the last token with a flag: a choice with score t + g·flag, one head."""
    length = int(rng.integers(10, 33))

    def value(x: Tensor) -> Tensor:
        t = torch.arange(length, dtype=x.dtype)
        chosen = (t + 2 * length * x[..., 1]).argmax(1)
        return torch.gather(x[..., 0], 1, chosen[:, None])[:, 0]

    return ZooTask(
        f"value of the last flagged token, length {length}",
        frozenset({1}),
        with_flags(length, 1, float(rng.uniform(0.3, 0.6))),
        value,
        some_noise(rng),
    )


def first_above(rng: Generator) -> ZooTask:
    """The second coordinate of the first token above c (0 if none is): a choice with score
    g·[x > c] − t, one head; [x > c] jumps, so that a refusal is right as well.
    """
    c = float(rng.uniform(0, 1))

    def value(x: Tensor) -> Tensor:
        above = x[..., 0] > c
        chosen = above.double().argmax(1)  # the first of equals
        return torch.gather(x[..., 1], 1, chosen[:, None])[:, 0] * above.any(1)

    return _ordered(rng, f"y of the first token with x > {c:.2f}", {1, REFUSE}, value)


def gated_by_first(rng: Generator) -> ZooTask:
    """max_t x if the first token is positive, else max_t y. Two heads, by absorption.

    Head 1 chooses by x among t > 1, and gives the first token an infinite score if it is negative:
    its output is then a mark. Head 2 does so for y, if it is positive. The readout takes what is
    no mark. One head does not do: its order of the tokens t > 1 cannot depend on the first.
    """
    length = int(rng.integers(10, 33))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        inputs = rng.standard_normal((count, length, 2))
        inputs[:, 0] = rng.choice([-1.0, 1.0], (count, 1))
        return inputs

    def value(x: Tensor) -> Tensor:
        best = x[:, 1:].amax(1)
        return torch.where(x[:, 0, 0] > 0, best[:, 0], best[:, 1])

    return ZooTask(
        f"max x or max y by the sign of the first token, length {length}",
        frozenset({2, REFUSE}),
        tokens,
        value,
        some_noise(rng),
    )


def random_weights(rng: Generator) -> ZooTask:
    """Σ w_t x_t with w drawn at random: average with v = w_t x, one head, however w changes."""
    length = int(rng.integers(10, 33))
    w = torch.from_numpy(rng.standard_normal(length))
    return ZooTask(
        f"weighted at random by position, length {length}",
        frozenset({1}),
        independent(rng, length, 2),
        lambda x: x[..., 0] @ w,
        some_noise(rng),
    )


def first_times_mean(rng: Generator) -> ZooTask:
    """(1 + x_1) · (1 + mean sin y): one average with v = (x[t = 1], sin y), or two heads."""

    def value(x: Tensor) -> Tensor:
        return (1 + x[:, 0, 0]) * (1 + torch.sin(x[..., 1]).mean(1) * x.shape[1] ** 0.5)

    return _ordered(rng, "first token · mean", {1, 2}, value)


def maxima_beside_first(rng: Generator) -> ZooTask:
    """max_t x + y_1: an extremum, and a token that is read wherever the extremum is: two choices at
    different tokens. Two, or a refusal, since a position may be read along.
    """
    return _ordered(rng, "max x + first y", {2, REFUSE}, lambda x: x[..., 0].amax(1) + x[:, 0, 1])


def alternating_maxima(rng: Generator) -> ZooTask:
    """max over even positions − max over odd ones: two extrema over disjoint sets need two heads.

    Of both halves of the same feature, so that no coordinate of the token tells them apart.
    """
    return _ordered(
        rng,
        "max at even − max at odd positions",
        {2},
        lambda x: x[:, ::2, 0].amax(1) - x[:, 1::2, 0].amax(1),
    )


def maxima_by_thirds(rng: Generator) -> ZooTask:
    """The sum of the maxima over thirds of the positions: three extrema over disjoint sets. 3."""

    def value(x: Tensor) -> Tensor:
        return torch.stack([part[..., 0].amax(1) for part in torch.tensor_split(x, 3, 1)]).sum(0)

    return _ordered(rng, "sum of maxima by thirds", {3}, value)


def positions_of_maxima(rng: Generator) -> ZooTask:
    """The position of the largest x: a choice with the position as value, one head. It jumps where
    two tokens tie: a refusal is right as well.
    """
    return _ordered(
        rng, "position of the largest", {1, REFUSE}, lambda x: x[..., 0].argmax(1).double(), dim=1
    )


CLASSES = (
    first_times_last,
    last_minus_first,
    one_position,
    half_sums,
    weights_by_position,
    maxima_by_halves,
    fading_maxima,
    largest_windows,
    distances_of_extrema,
    last_flagged,
    first_above,
    gated_by_first,
    random_weights,
    first_times_mean,
    maxima_beside_first,
    alternating_maxima,
    maxima_by_thirds,
    positions_of_maxima,
)
