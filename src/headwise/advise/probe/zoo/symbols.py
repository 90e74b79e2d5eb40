"""Discrete tokens, one-hot: V ≤ 8 frequencies are one average of V dimensions.

The frequencies of the symbols determine every target that does not depend on the order, and they
lie on the grid k/T: the readout is any function on that grid. So one head is enough, whatever the
target; a refusal is right as well where the readout must resolve 1/T.
"""

import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import REFUSE, Answer, Value, ZooTask, some_noise
from headwise.advise.probe.zoo.tokens import one_hot


def _of_symbols(
    rng: Generator, about: str, answers: set[Answer], value: Value, rarity: float = 1.0
) -> ZooTask:
    length, symbols = int(rng.integers(8, 41)), int(rng.integers(3, 9))
    words = f"{about}, {symbols} symbols, length {length}"
    tokens = one_hot(length, symbols, rarity)
    return ZooTask(words, frozenset(answers), tokens, value, some_noise(rng))


def symbol_counts(rng: Generator) -> ZooTask:
    """How often the first symbol occurs: average of its coordinate, one head."""
    return _of_symbols(rng, "count of a symbol", {1}, lambda x: x[..., 0].sum(1))


def symbol_entropies(rng: Generator) -> ZooTask:
    """Entropy of the symbols' frequencies: a readout of one average of V dimensions, one head."""

    def value(x: Tensor) -> Tensor:
        return -torch.special.xlogy(x.mean(1), x.mean(1)).sum(1)

    return _of_symbols(rng, "entropy of the symbols", {1, REFUSE}, value)


def distinct_symbols(rng: Generator) -> ZooTask:
    """How many symbols occur: Σ_v min(1, T · frequency), one head; it resolves 1/T: or a refusal.

    Written as Σ_v max_t [x_t = v] it has V extrema, but features with two values have no
    neighbourhood of their extremum, which the lower bound on heads needs.
    """
    return _of_symbols(
        rng, "number of distinct symbols", {1, REFUSE}, lambda x: x.amax(1).sum(1), rarity=1.8
    )


def symbol_products(rng: Generator) -> ZooTask:
    """Count of one symbol times count of another: one average of two dimensions, one head."""
    return _of_symbols(
        rng, "product of two counts", {1}, lambda x: x[..., 0].sum(1) * x[..., 1].sum(1)
    )


def rarest_symbols(rng: Generator) -> ZooTask:
    """The rarest symbol that occurs, as its number: one choice by rarity, one head."""
    length, symbols = int(rng.integers(8, 41)), int(rng.integers(4, 9))
    return ZooTask(
        f"rarest symbol that occurs, {symbols} symbols, length {length}",
        frozenset({1}),
        one_hot(length, symbols, rarity=2.5),
        lambda x: (x @ torch.arange(x.shape[2], dtype=x.dtype)).amax(1),
        some_noise(rng),
    )


def weighted_words(rng: Generator) -> ZooTask:
    """Σ_t w(x_t) over a vocabulary of 50, w drawn at random: average with v = w(x), one head."""
    length = int(rng.integers(8, 33))
    weights = torch.from_numpy(rng.standard_normal(50))
    return ZooTask(
        f"sum of the weights of words, 50 words, length {length}",
        frozenset({1}),
        one_hot(length, 50),
        lambda x: x.sum(1) @ weights,
        some_noise(rng),
    )


def commonest_symbols(rng: Generator) -> ZooTask:
    """Which symbol is the most frequent, a label: the readout compares V frequencies, one average.

    Frequencies that nearly tie differ by 1/T: a refusal is right as well.
    """
    length, symbols = int(rng.integers(8, 41)), int(rng.integers(3, 7))
    return ZooTask(
        f"commonest of {symbols} symbols, a label, length {length}",
        frozenset({1, REFUSE}),
        one_hot(length, symbols),
        lambda x: x.sum(1).argmax(1),
        labels=True,
    )


CLASSES = (
    symbol_counts,
    symbol_entropies,
    distinct_symbols,
    symbol_products,
    rarest_symbols,
    weighted_words,
    commonest_symbols,
)
