"""Random retrieval tasks on which the probe is tried: what it must find is known.

Every property is drawn from the trial's seed: D from 1 to 6, token_dim 2 to 8, length 16 to 64,
affine or bowl features, the outer map, the distribution of the inputs, and noise of up to 1 % of
the target's standard deviation. Features are drawn until no two are nearly the same (their
extremal directions at least 30° apart, the centres of bowls 0.6 standard deviations): of two
equal features nobody could count more than one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headwise.tasks.maps import Affine, Bowl, Function, OuterMap, Product, Sum, WeightedSum
from headwise.tasks.retrieval import Retrieval

Outer = Literal["sum", "weighted sum", "product", "exponential", "sine"]
OUTERS: tuple[Outer, ...] = ("sum", "weighted sum", "product", "exponential", "sine")
LARGEST_DIM, LARGEST_NOISE = 6, 0.01
_CLOSEST_ANGLE, _CLOSEST_CENTRES = pi / 6, 0.6
_DRAW, _NOISE, _MOMENTS = 0x7121, 0x7122, 0x7123


@dataclass(frozen=True)
class ProbeTrial:
    """A task, the noise on its target, and the words that describe it."""

    task: Retrieval
    noise: float  # standard deviation of the noise in units of the target's own
    kind: Literal["affine", "bowl"]
    outer: Outer

    @property
    def intrinsic_dim(self) -> int:
        """What the probe must find."""
        return self.task.intrinsic_dim

    def sample(self, count: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Sequences and noisy targets."""
        inputs, targets = self.task.sample(count, seed)
        drawn = np.random.default_rng([*seed, _NOISE]).standard_normal(count)
        return inputs, targets + self.noise * targets.std() * torch.from_numpy(drawn).float()

    def noisy_target(self, seed: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
        """The target as a function whose every call adds fresh noise."""
        rng = np.random.default_rng([*seed, _NOISE])
        scale = self.noise * sqrt(self.task.variance())

        def call(inputs: Tensor) -> Tensor:
            values = self.task.oracle(inputs)
            return values + scale * torch.from_numpy(rng.standard_normal(len(values)))

        return call

    def __str__(self) -> str:
        task = self.task
        return (
            f"D = {self.intrinsic_dim}, {self.kind}, {self.outer}, {task.inputs}, "
            f"token_dim {task.token_dim}, length {task.length}, noise {100 * self.noise:.2f} %"
        )


def draw_trial(seed: int, index: int) -> ProbeTrial:
    """Trial number `index` of the evaluation `seed`."""
    rng = np.random.default_rng([seed, index, _DRAW])
    count, token_dim = int(rng.integers(1, LARGEST_DIM + 1)), int(rng.integers(2, 9))
    length = int(rng.integers(16, 65))
    inputs: Literal["gaussian", "uniform"] = "gaussian" if rng.random() < 0.5 else "uniform"
    kind: Literal["affine", "bowl"] = "affine" if rng.random() < 0.5 else "bowl"
    outer = OUTERS[int(rng.integers(len(OUTERS)))]
    words: list[Literal["min", "max"]] = ["min"] * count
    if kind == "affine":
        words = ["max" if rng.random() < 0.5 else "min" for _ in range(count)]
        signs = np.array([1.0 if word == "max" else -1.0 for word in words])
        weights = signs[:, None] * directions(rng, count, token_dim)
        features: Affine | Bowl = Affine(weights=_rows(weights))
    else:
        features = Bowl(centres=_rows(_centres(rng, count, token_dim, inputs)))
    plain = Retrieval(
        features=features, length=length, extrema=tuple(words), inputs=inputs, outer=Sum()
    )
    task = Retrieval(
        features=features,
        length=length,
        extrema=tuple(words),
        inputs=inputs,
        outer=_outer(rng, outer, plain),
    )
    return ProbeTrial(task, float(rng.uniform(0, LARGEST_NOISE)), kind, outer)


def directions(rng: np.random.Generator, count: int, token_dim: int) -> np.ndarray:
    """Unit vectors, no two closer than the least angle."""
    while True:
        drawn = rng.standard_normal((count, token_dim))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        cosines = drawn @ drawn.T - 2 * np.eye(count)
        if cosines.max() < cos(_CLOSEST_ANGLE):
            return drawn


def _centres(rng: np.random.Generator, count: int, token_dim: int, inputs: str) -> np.ndarray:
    """Centres among the tokens, no two closer than the least distance in standard deviations."""
    spread = 1.0 if inputs == "gaussian" else 1 / sqrt(12)
    while True:
        if inputs == "gaussian":
            drawn = 0.8 * rng.standard_normal((count, token_dim))
        else:
            drawn = rng.uniform(0.1, 0.9, (count, token_dim))
        gaps = np.linalg.norm(drawn[:, None] - drawn, axis=-1) + 1e9 * np.eye(count)
        if count == 1 or gaps.min() > _CLOSEST_CENTRES * spread:
            return drawn


def _outer(rng: np.random.Generator, name: Outer, plain: Retrieval) -> OuterMap:
    """The outer map; nonlinear ones act on features in standard units."""
    count = plain.intrinsic_dim
    weights = rng.uniform(0.5, 1.5, count) * rng.choice([-1.0, 1.0], count)
    if name == "sum":
        return Sum()
    if name == "product":
        return Product()
    if name == "weighted sum":
        return WeightedSum(weights=tuple(map(float, weights)))
    inputs, _ = plain.sample(1 << 12, (0, _MOMENTS))
    features, _ = plain.retrieve(inputs.double())
    mean, scale = features.mean(0), features.std(0)
    first = torch.from_numpy(weights / np.linalg.norm(weights))
    second = torch.from_numpy(rng.uniform(0.5, 1.0, count) * rng.choice([-1.0, 1.0], count))

    def smooth(values: Tensor) -> Tensor:
        standard = (values.double() - mean) / scale
        if name == "exponential":
            return torch.exp(0.5 * standard @ first)
        return standard @ first + 0.5 * torch.sin(standard @ second)

    return Function(function=smooth, count=count)


def _rows(array: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in array)
