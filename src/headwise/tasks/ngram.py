"""n-gram targets on white noise: what a layer must extract is known, and so is the least error.

Tokens x(t) are independent standard Gaussians of `dim` coordinates. With u_i(t) = U_i x(t − lag_i),
the U_i random rotations, and weights with Σ w_i² = 1, the target at t is

    linear     Σ_i w_i u_i(t)
    tanh       Σ_i w_i tanh(u_i(t)) / √E tanh²
    bilinear   Σ_i w_i u_i(t) ∘ u_{i+1}(t)        products of neighbouring lags

plus, with `noise`, fresh Gaussian noise. All terms of a target are uncorrelated, have mean zero
and, coordinate by coordinate, variance w_i². A term one of whose lags cannot be seen has
conditional mean zero given all else, since that token is independent of the rest and u or tanh(u)
is odd in it. So the best answer is the sum of the terms that are seen, and the least error is the
noise's variance plus the squared weights of the others: `least_error`.
"""

from collections.abc import Collection
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.tasks.protocols import LastTokenAnswers

_ROTATIONS = 0x96A4
_TANH_SQUARE = 0.39429449  # E tanh(u)² of a standard Gaussian u, by Gauss–Hermite quadrature


@spec
class NGram(LastTokenAnswers):
    """Predict, at every token that has all its lags, what the tokens `lags` before it make up.

    The weight of the i-th term is proportional to decay^i. `seed` draws the rotations.
    """

    length: int
    lags: tuple[int, ...]
    dim: int = 1
    target: Literal["linear", "tanh", "bilinear"] = "linear"
    decay: float = 1.0
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.dim >= 1, f"dim is {self.dim}; the least is 1")
        require(
            len(self.lags) >= 1 and len(set(self.lags)) == len(self.lags) and min(self.lags) >= 0,
            "lags are distinct whole numbers, not negative, at least one",
        )
        require(
            self.length > max(self.lags),
            f"a sequence of {self.length} tokens has none that is {max(self.lags)} before another; "
            f"the length is at least {max(self.lags) + 1}",
        )
        require(
            self.target in ("linear", "tanh", "bilinear"),
            "target is 'linear', 'tanh' or 'bilinear'",
        )
        require(
            self.target != "bilinear" or len(self.lags) >= 2,
            "a bilinear target multiplies neighbouring lags: at least two",
        )
        require(self.decay > 0, f"decay is {self.decay}; it is positive, and 1 for equal weights")
        require(self.noise >= 0, "noise is a standard deviation, not negative")

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.dim

    @property
    def answers(self) -> slice:
        """The tokens that have all their lags."""
        return slice(max(self.lags), None)

    @property
    def scale(self) -> float:
        """E‖target‖²: the error of answering zero."""
        return self.dim * (1 + self.noise**2)

    @property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The lags that each term of the target needs, by their place in `lags`."""
        if self.target == "bilinear":
            return tuple((place, place + 1) for place in range(len(self.lags) - 1))
        return tuple((place,) for place in range(len(self.lags)))

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each term; their squares sum to one."""
        raw = float(self.decay) ** np.arange(len(self.terms))
        return tuple((raw / np.linalg.norm(raw)).tolist())

    def least_error(self, visible: Collection[int] | None = None) -> float:
        """The least mean-square error, relative to `scale`, of anyone who sees these lags only.

        By default all lags are seen, and only the noise is left.
        """
        lost = sum(
            weight**2
            for weight, places in zip(self.weights, self.terms, strict=True)
            if visible is not None and not {self.lags[place] for place in places} <= set(visible)
        )
        return (lost + self.noise**2) / (1 + self.noise**2)

    def oracle(
        self, tokens: Float[Tensor, "batch length dim"], visible: Collection[int] | None = None
    ) -> Float[Tensor, "batch answers dim"]:
        """The best answer: the sum of all terms whose lags are seen."""
        first = max(self.lags)
        parts = []
        for lag, rotation in zip(self.lags, self._rotations(), strict=True):
            earlier = tokens[:, first - lag : self.length - lag]
            part = earlier @ torch.from_numpy(rotation).to(tokens).mT
            parts.append(torch.tanh(part) / _TANH_SQUARE**0.5 if self.target == "tanh" else part)
        answer = torch.zeros_like(parts[0])
        for weight, places in zip(self.weights, self.terms, strict=True):
            if visible is None or {self.lags[place] for place in places} <= set(visible):
                factors = torch.stack([parts[place] for place in places])
                answer = answer + weight * factors.prod(0)
        return answer

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count length dim"], Float[Tensor, "count answers dim"]]:
        """`count` sequences and their targets, with noise where the task has some."""
        require(count >= 1, f"a sample of {count} sequences is empty")
        rng = np.random.default_rng(seed)
        tokens = rng.standard_normal((count, self.length, self.dim), np.float32)
        targets = self.oracle(torch.from_numpy(tokens))
        if self.noise:
            extra = rng.standard_normal(tuple(targets.shape), np.float32)
            targets = targets + self.noise * torch.from_numpy(extra)
        return torch.from_numpy(tokens), targets

    def _rotations(self) -> Float[np.ndarray, "lags dim dim"]:
        rng = np.random.default_rng([self.seed, _ROTATIONS])
        gaussian = rng.standard_normal((len(self.lags), self.dim, self.dim))
        rotations, triangles = np.linalg.qr(gaussian)
        # Signs that make the distribution uniform, and the same with every LAPACK.
        return rotations * np.sign(np.einsum("kii->ki", triangles))[:, None]


def four_gram(
    length: int = 32,
    dim: int = 8,
    target: Literal["linear", "tanh", "bilinear"] = "linear",
    decay: float = 1.0,
) -> NGram:
    """The allocation paper's 4-gram on white noise: a token and the three before it.

    The paper names the task; length, dimension and weights are this project's choice.
    """
    return NGram(length=length, lags=(0, 1, 2, 3), dim=dim, target=target, decay=decay)
