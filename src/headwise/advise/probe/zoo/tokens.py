"""Tokens of the zoo: independent ones by default, and what real data do to them."""

import numpy as np
from numpy.random import Generator

from headwise.advise.probe.zoo.task import Tokens


def independent(rng: Generator, length: int, token_dim: int) -> Tokens:
    """Gaussian or uniform coordinates of deviation one, as the seed will have it."""
    gaussian = rng.random() < 0.5

    def draw(rng: Generator, count: int) -> np.ndarray:
        shape = (count, length, token_dim)
        return rng.standard_normal(shape) if gaussian else rng.uniform(-(3**0.5), 3**0.5, shape)

    return draw


def any_shape(rng: Generator, longest: int = 48, widest: int = 4) -> tuple[int, int]:
    """A length from 8 and a token_dim from 1."""
    return int(rng.integers(8, longest + 1)), int(rng.integers(1, widest + 1))


def heavy_tailed(length: int, token_dim: int, freedom: float) -> Tokens:
    """Student's t: the k-th moment is finite for k < freedom."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        return rng.standard_t(freedom, (count, length, token_dim))

    return draw


def correlated(length: int, token_dim: int, memory: float, shared: float) -> Tokens:
    """x_t = memory · x_{t-1} + fresh noise, and a part that all tokens of a sequence share."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        fresh = rng.standard_normal((count, length, token_dim))
        for t in range(1, length):
            fresh[:, t] = memory * fresh[:, t - 1] + (1 - memory**2) ** 0.5 * fresh[:, t]
        common = rng.standard_normal((count, 1, token_dim))
        return (1 - shared**2) ** 0.5 * fresh + shared * common

    return draw


def one_hot(length: int, symbols: int, rarity: float = 1.0) -> Tokens:
    """A symbol at every position; each is rarer than the one before by a factor."""
    shares = rarity ** -np.arange(symbols)

    def draw(rng: Generator, count: int) -> np.ndarray:
        drawn = rng.choice(symbols, size=(count, length), p=shares / shares.sum())
        return np.eye(symbols)[drawn]

    return draw


def with_flags(length: int, token_dim: int, share: float) -> Tokens:
    """Gaussian tokens whose last coordinate is a flag, 1 at a share of the tokens and else 0."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        inputs = rng.standard_normal((count, length, token_dim + 1))
        inputs[..., -1] = rng.random((count, length)) < share
        return inputs

    return draw


def with_irrelevant(relevant: Tokens, more: int) -> Tokens:
    """Coordinates that the target does not look at, after those that it does."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        inputs = relevant(rng, count)
        return np.concatenate([inputs, rng.standard_normal((*inputs.shape[:2], more))], 2)

    return draw
