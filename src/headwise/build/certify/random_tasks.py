"""Random tasks of every kind, with the error to ask for and the heads to build."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build._retrieval import retrieval
from headwise.build.budget import known_task
from headwise.build.built import Built
from headwise.build.certify.attack import Attack
from headwise.tasks import Affine, Bowl, Function, Product, Retrieval, Sum, WeightedSum
from headwise.tasks.maps import Features, OuterMap

KINDS = ("affine", "bowl", "cones", "waves")
"""Kinds of features, taken in turn."""
_FRACTION = {1: 0.01, 2: 0.05, 3: 0.25}
"""Error asked of functions given as code, relative to the target's range, by token dimension."""


def cones(tokens: Float[Tensor, "*batch dim"], count: int) -> Float[Tensor, "*batch count"]:
    """Distances to `count` points of the cube: Lipschitz with constant 1, not smooth."""
    place = torch.arange(1, count + 1, dtype=tokens.dtype, device=tokens.device)
    axes = torch.arange(1, tokens.shape[-1] + 1, dtype=tokens.dtype, device=tokens.device)
    centres = (place[:, None] * axes.sqrt() * 0.618) % 1
    return (tokens.unsqueeze(-2) - centres).square().sum(-1).add(1e-300).sqrt()


def waves(tokens: Float[Tensor, "*batch dim"], count: int) -> Float[Tensor, "*batch count"]:
    """sin(2(x_1 + … + x_d)/√d + i): first and second derivatives at most 2 and 4."""
    phase = torch.arange(1, count + 1, dtype=tokens.dtype, device=tokens.device)
    return torch.sin(2 * tokens.sum(-1, keepdim=True) / tokens.shape[-1] ** 0.5 + phase)


def rounded_norm(features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
    """√(1 + |z|²): first and second derivatives at most 1."""
    return (1 + features.square().sum(-1)).sqrt()


@dataclass(frozen=True)
class CertificateTrial:
    """A task, the error asked for and a number of heads; `run` builds and attacks."""

    kind: str
    task: Retrieval
    error: float
    heads: int

    def run(self, rounds: int | None = 1, seconds: float = 5.0) -> tuple[Built, Attack]:
        """The network with its certificate, and the attack on it."""
        built = retrieval(self.task, self.error, heads=self.heads)
        return built, built.certificate.attack(seconds=seconds, rounds=rounds)


def draw_trials(count: int, seed: int = 0) -> Iterator[CertificateTrial]:
    """`count` trials, the kinds of features in turn; trial i depends on (seed, i) alone."""
    for index in range(count):
        yield draw_trial(index, seed)


def draw_trial(index: int, seed: int = 0) -> CertificateTrial:
    """Trial number `index` of a seed."""
    return _trial(KINDS[index % len(KINDS)], np.random.default_rng([seed, index, 0x7B1]))


def _trial(kind: str, rng: np.random.Generator) -> CertificateTrial:
    given_as_code = kind in ("cones", "waves")
    dims, dim = int(rng.integers(1, 7)), int(rng.integers(1, 4 if given_as_code else 5))
    length = round(2 ** float(rng.uniform(2, 8)))
    dims = min(dims, length)
    signs = tuple("max" if rng.random() < 0.5 else "min" for _ in range(dims))
    subsets: tuple[tuple[int, ...], ...] = ()
    if rng.random() < 0.5:
        sizes = rng.integers(max(1, length // 4), length + 1, dims)
        subsets = tuple(tuple(sorted(rng.permutation(length)[:size].tolist())) for size in sizes)
    task = Retrieval(
        features=_features(kind, dims, dim, int(rng.integers(1000))),
        length=length,
        outer=_outer(dims, rng),
        extrema=signs,  # type: ignore[arg-type]
        subsets=subsets,
        inputs="uniform",
    )
    what = known_task(task, None, bounded=False, heading="")
    fraction = _FRACTION[dim] if given_as_code else 10 ** rng.uniform(-3, -1)
    scale = what.outer.spread(what.features.high - what.features.low)
    return CertificateTrial(kind, task, fraction * scale, dims + int(rng.integers(0, 3)))


def _features(kind: str, count: int, dim: int, seed: int) -> Features:
    if kind == "affine":
        return Affine.random_unit(count, dim, seed)
    if kind == "bowl":
        return Bowl.random(count, dim, seed)
    if kind == "cones":
        return Function(
            function=lambda tokens: cones(tokens, count), count=count, token_dim=dim, lipschitz=1.0
        )
    return Function(
        function=lambda tokens: waves(tokens, count),
        count=count,
        token_dim=dim,
        lipschitz=2.0,
        curvature=4.0,
        low=-1.0,
        high=1.0,
    )


def _outer(dims: int, rng: np.random.Generator) -> OuterMap:
    choices: list[OuterMap] = [
        Sum(),
        WeightedSum(weights=tuple(rng.uniform(-2, 2, dims).tolist())),
        Product(),
    ]
    if dims <= 3:
        choices.append(
            Function(
                function="headwise.build.certify.random_tasks:rounded_norm",
                count=dims,
                lipschitz=1.0,
                curvature=1.0,
            )
        )
    return choices[int(rng.integers(len(choices)))]
