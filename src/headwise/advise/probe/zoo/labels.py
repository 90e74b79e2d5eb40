"""Class labels: which token is extremal, in which range a number lies, and wrong labels."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.extrema import weighted_maxima
from headwise.advise.probe.zoo.task import (
    REFUSE,
    Answer,
    Delivery,
    Tokens,
    Value,
    ZooData,
    ZooTask,
    right,
)
from headwise.advise.probe.zoo.tokens import independent


def classes_of_argmax(rng: Generator) -> ZooTask:
    """The kind of the token with the largest x, of 2 to 20 kinds: a choice whose value is the kind.

    The kinds are sectors of the plane of two further coordinates, told at their borders with a
    margin, so that the readout separates them. One head.
    """
    length, kinds = int(rng.integers(10, 41)), int(rng.integers(2, 21))
    text = rng.random() < 0.5

    def tokens(rng: Generator, count: int) -> np.ndarray:
        kind = rng.integers(kinds, size=(count, length))
        angle = 2 * np.pi * (kind + rng.uniform(-0.3, 0.3, kind.shape)) / kinds
        return np.stack([rng.standard_normal(kind.shape), np.cos(angle), np.sin(angle)], 2)

    def value(x: Tensor) -> Tensor:
        chosen = x[..., 0].argmax(1)
        angle = torch.atan2(x[..., 2], x[..., 1])
        angle = torch.gather(angle, 1, chosen[:, None])[:, 0]
        return (angle * kinds / (2 * torch.pi)).round().long() % kinds

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        names = np.array([f"kind {number}" for number in range(kinds)])
        return ZooData(inputs.astype(np.float32), names[clean] if text else clean)

    about = f"kind of the largest token, {kinds} classes, length {length}"
    return ZooTask(about, right(1), tokens, value, labels=True, deliver=deliver)


def largest_coordinate(rng: Generator) -> ZooTask:
    """Which of k coordinates has the largest maximum? k maxima in appearance; one head.

    It is the largest coordinate of the token with the largest entry: one choice. Of x and −x it is
    the sign of the largest |x| (`signs_of_largest`), and it jumps, too, where two tokens with
    different coordinates tie: a refusal is right as well.
    """
    length, k = int(rng.integers(10, 41)), int(rng.integers(2, 7))
    return ZooTask(
        f"coordinate of the largest entry, {k} classes, length {length}",
        right(1, REFUSE),
        independent(rng, length, k),
        lambda x: x.amax(1).argmax(1),
        labels=True,
    )


def largest_mean(rng: Generator) -> ZooTask:
    """Which of k ≤ 6 coordinates has the largest mean? One average of k dimensions, one head."""
    length, k = int(rng.integers(8, 41)), int(rng.integers(2, 7))
    return ZooTask(
        f"coordinate of the largest mean, {k} classes, length {length}",
        right(1),
        independent(rng, length, k),
        lambda x: x.mean(1).argmax(1),
        labels=True,
    )


def _binned(rng: Generator, tokens: Tokens, value: Value, bins: int) -> Value:
    """The number of the equally frequent bin in which the value lies."""
    drawn = value(torch.from_numpy(tokens(rng, 20_000)))
    borders = torch.quantile(drawn, torch.arange(1, bins, dtype=torch.float64) / bins)
    return lambda x: torch.bucketize(value(x), borders)


def _flipped(share: float, classes: int) -> Delivery:
    """A share of the labels is replaced by another one."""

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        wrong = rng.random(len(clean)) < share
        other = (clean + rng.integers(1, classes, len(clean))) % classes
        return ZooData(inputs.astype(np.float32), np.where(wrong, other, clean))

    return deliver


def _ranges_of_a_number(
    rng: Generator, answers: Callable[[int], frozenset[Answer]], flipped: float
) -> ZooTask:
    count, bins = int(rng.integers(1, 4)), int(rng.integers(2, 21))
    length, token_dim = int(rng.integers(12, 41)), int(rng.integers(2, 5))
    tokens = independent(rng, length, token_dim)
    value = _binned(rng, tokens, weighted_maxima(rng, count, token_dim), bins)
    noise = f", {100 * flipped:.0f} % of the labels wrong" if flipped else ""
    return ZooTask(
        f"{bins} classes of {count} maxima, length {length}, token_dim {token_dim}{noise}",
        answers(count),
        tokens,
        value,
        labels=True,
        deliver=_flipped(flipped, bins) if flipped else None,
        callable_=not flipped,
    )


def classes_of_maxima(rng: Generator) -> ZooTask:
    """In which of 2 to 20 ranges does a sum of D ≤ 3 maxima lie? D heads.

    The surface between two classes is a level of the sum: to follow it takes all D extrema.
    """
    return _ranges_of_a_number(rng, lambda count: right(count), 0.0)


def wrong_labels(rng: Generator) -> ZooTask:
    """The same with 2 to 20 % of the labels wrong: D, or a refusal where that hides the last head.

    Wrong labels put a floor under the cross-entropy; what a head buys may lie below it.
    """
    share = float(rng.uniform(0.02, 0.2))
    return _ranges_of_a_number(rng, lambda count: right(count, REFUSE), share)


def classes_of_means(rng: Generator) -> ZooTask:
    """In which of 2 to 20 ranges does a mean lie? One average, one head, 0 to 10 % labels wrong."""
    bins, length = int(rng.integers(2, 21)), int(rng.integers(8, 41))
    share = float(rng.uniform(0, 0.1)) if rng.random() < 0.5 else 0.0
    tokens = independent(rng, length, 2)
    value = _binned(rng, tokens, lambda x: torch.tanh(x[..., 0]).mean(1), bins)
    return ZooTask(
        f"{bins} classes of a mean, length {length}, {100 * share:.0f} % of the labels wrong",
        right(1),
        tokens,
        value,
        labels=True,
        deliver=_flipped(share, bins) if share else None,
        callable_=not share,
    )


def both_occur(rng: Generator) -> ZooTask:
    """Is there a token with x > a and one with y > b? Two maxima in appearance; one head.

    Are both counts, of x > a and of y > b, at least one? Tokens keep away from the borders, so that
    the indicators are continuous where tokens occur, and one average of both holds the counts. The
    readout resolves 1/T: a refusal is right as well.
    """
    length = int(rng.integers(10, 33))
    margin = 0.1

    def tokens(rng: Generator, count: int) -> np.ndarray:
        drawn = rng.standard_normal((count, length, 2))
        border = _even_border(length)
        near = np.abs(drawn - border) < margin
        return np.where(near, drawn - 3 * margin, drawn)

    return ZooTask(
        f"is there a large x and a large y, a label, length {length}",
        right(1, REFUSE),
        tokens,
        lambda x: (x.amax(1) > _even_border(length)).all(1).long(),
        labels=True,
    )


def signs_of_largest(rng: Generator) -> ZooTask:
    """The sign of the token with the largest |x|: a choice whose value is the sign, one head.

    It jumps where two tokens of different signs tie: a refusal is right as well.
    """
    length = int(rng.integers(10, 41))

    def value(x: Tensor) -> Tensor:
        chosen = x[..., 0].abs().argmax(1)
        return (torch.gather(x[..., 0], 1, chosen[:, None])[:, 0] > 0).long()

    return ZooTask(
        f"sign of the largest |x|, a label, length {length}",
        right(1, REFUSE),
        independent(rng, length, 1),
        value,
        labels=True,
    )


def equal_signs(rng: Generator) -> ZooTask:
    """Have the largest |x| and the largest |y| the same sign? Two choices, at different tokens, and
    the parity of both values is no function of one: two heads. It jumps: or a refusal.
    """
    length = int(rng.integers(10, 41))

    def value(x: Tensor) -> Tensor:
        chosen = x.abs().argmax(1)
        extreme = torch.gather(x, 1, chosen[:, None])[:, 0]
        return (extreme.prod(1) > 0).long()

    return ZooTask(
        f"equal signs of the largest |x| and |y|, a label, length {length}",
        right(2, REFUSE),
        independent(rng, length, 2),
        value,
        labels=True,
    )


def same_token(rng: Generator) -> ZooTask:
    """Is the token with the largest x the one with the largest y, correlated with x? Two choices
    are compared, two heads; it jumps where tokens tie: or a refusal. Not one, though where both are
    the same token, that one alone seems to matter.
    """
    length = int(rng.integers(10, 31))

    def tokens(rng: Generator, count: int) -> np.ndarray:
        x, fresh = rng.standard_normal((2, count, length))
        return np.stack([x, 0.9 * x + (1 - 0.9**2) ** 0.5 * fresh], 2)

    return ZooTask(
        f"is the largest x where the largest y is, a label, length {length}",
        right(2, REFUSE),
        tokens,
        lambda x: (x[..., 0].argmax(1) == x[..., 1].argmax(1)).long(),
        labels=True,
    )


def _even_border(length: int) -> float:
    """The median of the largest of so many Gaussian numbers, nearly."""
    return float(torch.special.ndtri(torch.tensor(0.6, dtype=torch.float64) ** (1 / length)))


CLASSES = (
    classes_of_argmax,
    largest_coordinate,
    largest_mean,
    classes_of_maxima,
    wrong_labels,
    classes_of_means,
    both_occur,
    signs_of_largest,
    equal_signs,
    same_token,
)
