"""Targets that see the sequence through averages: one head each, by the fact of averages."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import Value, ZooTask, right, some_noise
from headwise.advise.probe.zoo.tokens import any_shape, independent


def _of_one_head(
    rng: Generator, about: str, make: Callable[[int, int], Value], least_dim: int = 1
) -> ZooTask:
    """`make(length, token_dim)` gives the target; one head is the only right answer."""
    length, token_dim = any_shape(rng)
    token_dim = max(token_dim, least_dim)
    tokens = independent(rng, length, token_dim)
    words = f"{about}, length {length}, token_dim {token_dim}"
    return ZooTask(words, right(1), tokens, make(length, token_dim), some_noise(rng))


def _direction(rng: Generator, token_dim: int) -> Tensor:
    drawn = rng.standard_normal(token_dim)
    return torch.from_numpy(drawn / np.linalg.norm(drawn))


def means(rng: Generator) -> ZooTask:
    """(1/T) Σ g(a·x_t), g the identity, a sine, a square or a tanh: average with v = g(a·x)."""
    name = str(rng.choice(["identity", "sine", "square", "tanh"]))
    maps: dict[str, Value] = {
        "identity": lambda x: x,
        "sine": lambda x: torch.sin(2 * x),
        "square": torch.square,
        "tanh": torch.tanh,
    }
    g = maps[name]

    def make(length: int, token_dim: int) -> Value:
        a = _direction(rng, token_dim)
        return lambda x: g(x @ a).mean(1)

    return _of_one_head(rng, f"mean of {name}(a·x)", make)


def hinge_sums(rng: Generator) -> ZooTask:
    """Σ relu(x_t − c): average with v = relu(x − c), a token network of one unit."""
    c = float(rng.uniform(0, 1.5))
    return _of_one_head(
        rng, f"sum of relu(x − {c:.2f})", lambda *_: lambda x: (x[..., 0] - c).relu().sum(1)
    )


def roots_of_sums(rng: Generator) -> ZooTask:
    """√(1 + Σ relu(x_t − c)²): average with v = relu(x − c)², then a smooth readout."""
    c = float(rng.uniform(-1, 1.5))
    return _of_one_head(
        rng,
        f"root of 1 + sum of relu(x − {c:.2f})²",
        lambda *_: lambda x: (1 + (x[..., 0] - c).relu().square().sum(1)).sqrt(),
    )


def soft_counts(rng: Generator) -> ZooTask:
    """Σ σ((x_t − c)/w), w ≥ 0.3: average with v = σ((x − c)/w), which has slope 1/4w at most."""
    c, w = float(rng.uniform(-1, 1)), float(rng.uniform(0.3, 1))
    return _of_one_head(
        rng,
        f"soft count of x > {c:.2f}, width {w:.2f}",
        lambda *_: lambda x: torch.sigmoid((x[..., 0] - c) / w).sum(1),
    )


def moments(rng: Generator) -> ZooTask:
    """Variance, covariance or third moment: averages with v = (x, y, x², xy, x³), one head."""
    which = str(rng.choice(["variance", "covariance", "third moment"]))

    def value(x: Tensor) -> Tensor:
        a, b = x[..., 0], x[..., 1]
        if which == "variance":
            return a.var(1, correction=0)
        if which == "covariance":
            return (a * b).mean(1) - a.mean(1) * b.mean(1)
        return (a**3).mean(1)

    return _of_one_head(rng, which, lambda *_: value, least_dim=2)


def products_of_means(rng: Generator) -> ZooTask:
    """Π_i mean_t a_i·x_t, i ≤ 2, shifted from zero: one head with a value dimension for each."""
    shift = float(rng.uniform(0, 1))
    return _of_one_head(
        rng,
        "product of two means",
        lambda length, _: lambda x: ((x[..., :2].mean(1) * length**0.5) + shift).prod(1),
        least_dim=2,
    )


def ratios_of_means(rng: Generator) -> ZooTask:
    """Σ e^{x_t} y_t / Σ (1 + y_t²): both are averages, the readout divides them."""
    return _of_one_head(
        rng,
        "ratio of two means",
        lambda *_: (
            lambda x: (torch.sin(x[..., 0]) * x[..., 1]).mean(1) / (1 + x[..., 1] ** 2).mean(1)
        ),
        least_dim=2,
    )


def softmax_means(rng: Generator) -> ZooTask:
    """Σ e^{βx} y / Σ e^{βx}, β ≤ 2: a choice at finite β is what a head computes, exactly."""
    beta = float(rng.uniform(0.3, 2))
    return _of_one_head(
        rng,
        f"softmax-weighted mean, β {beta:.2f}",
        lambda *_: lambda x: (torch.softmax(beta * x[..., 0], 1) * x[..., 1]).sum(1),
        least_dim=2,
    )


def log_sums_of_exponentials(rng: Generator) -> ZooTask:
    """(1/β) log mean e^{βx}, β ≤ 1.5: average with v = e^{βx}, the readout takes the logarithm."""
    beta = float(rng.uniform(0.5, 1.5))
    return _of_one_head(
        rng,
        f"log-mean-exp, β {beta:.2f}",
        lambda length, _: lambda x: torch.logsumexp(beta * x[..., 0], 1) / beta,
    )


def pair_energies(rng: Generator) -> ZooTask:
    """mean_{s,t} cos(x_s − x_t) = (mean cos x)² + (mean sin x)²: pairs only in appearance."""
    k = float(rng.uniform(0.5, 1.2))
    return _of_one_head(
        rng,
        f"mean over pairs of cos({k:.2f}(x_s − x_t))",
        lambda *_: (
            lambda x: torch.cos(k * x[..., 0]).mean(1) ** 2 + torch.sin(k * x[..., 0]).mean(1) ** 2
        ),
    )


def lengths_of_means(rng: Generator) -> ZooTask:
    """|mean_t x_t|: average with v = x, then a norm."""
    return _of_one_head(
        rng, "length of the mean token", lambda *_: lambda x: x.mean(1).norm(dim=1), least_dim=2
    )


CLASSES = (
    means,
    hinge_sums,
    roots_of_sums,
    soft_counts,
    moments,
    products_of_means,
    ratios_of_means,
    softmax_means,
    log_sums_of_exponentials,
    pair_energies,
    lengths_of_means,
)
