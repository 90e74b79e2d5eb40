"""Generalized D-retrieval, the targets of the head-count paper (arXiv 2510.06662).

z_i(X) = min_{t ∈ S_i} f_i(x(t))   (or max),   i = 1..D,        H(X) = F_0(z_1, …, z_D)
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.spec import spec
from headwise.tasks.maps import Affine, Features, Function, OuterMap, Sum, WeightedSum

Extremum = Literal["min", "max"]


@spec
class Retrieval:
    """A retrieval task: equal fields, equal data, on any machine.

    `extrema` is one word for all features or one for each. `subsets` are the S_i; () means that
    every feature looks at the whole sequence.
    """

    features: Features
    length: int
    outer: OuterMap = Sum()
    extrema: Extremum | tuple[Extremum, ...] = "max"
    subsets: tuple[tuple[int, ...], ...] = ()
    inputs: Literal["gaussian", "uniform"] = "gaussian"

    def __post_init__(self) -> None:
        require(self.length >= 1, f"length is {self.length}; a sequence has at least 1 token")
        require(self.token_dim >= 1, "features given as a function must state their token_dim")
        require(self.inputs in ("gaussian", "uniform"), "inputs are 'gaussian' or 'uniform'")
        words = self.extrema if isinstance(self.extrema, tuple) else (self.extrema,)
        require(
            set(words) <= {"min", "max"} and len(words) in (1, self.intrinsic_dim),
            f"extrema is 'min' or 'max', once or for each of the {self.intrinsic_dim} features",
        )
        require(
            len(self.subsets) in (0, self.intrinsic_dim),
            f"subsets needs one set for each of the {self.intrinsic_dim} features, or none at all",
        )
        for subset in self.subsets:
            require(
                len(subset) > 0 and all(0 <= t < self.length for t in subset),
                f"a subset holds positions from 0 to {self.length - 1}, at least one",
            )
        outer_count = {WeightedSum: "weights", Function: "count"}.get(type(self.outer))
        if outer_count:
            given = getattr(self.outer, outer_count)
            given = given if isinstance(given, int) else len(given)
            require(
                given == self.intrinsic_dim,
                f"the outer map takes {given} features, the task has {self.intrinsic_dim}",
            )

    @property
    def intrinsic_dim(self) -> int:
        """D, the number of features extracted."""
        return self.features.count

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.features.token_dim

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count length dim"], Float[Tensor, " count"]]:
        """`count` sequences and their targets. A longer sample starts with the shorter one."""
        require(count >= 1, f"a sample of {count} sequences is empty")
        rng = np.random.default_rng(seed)
        shape = (count, self.length, self.token_dim)
        draw = rng.standard_normal if self.inputs == "gaussian" else rng.random
        inputs = torch.from_numpy(draw(shape, dtype=np.float32))
        return inputs, self.oracle(inputs.double()).float()

    def oracle(self, inputs: Float[Tensor, "batch length dim"]) -> Float[Tensor, " batch"]:
        """The exact target, in the precision of `inputs`; differentiable where the target is."""
        return self.outer(self.retrieve(inputs)[0])

    def retrieve(
        self, inputs: Float[Tensor, "batch length dim"]
    ) -> tuple[Float[Tensor, "batch features"], Tensor]:
        """The features z_i and the positions at which they are attained."""
        if not bool(torch.isfinite(inputs).all()):
            raise InputError("the inputs hold NaN or infinite values")
        signed = self.features(inputs) * inputs.new_tensor(self.signs)  # (batch, length, features)
        best, positions = signed.masked_fill(~self.membership, -torch.inf).max(dim=1)
        return best * inputs.new_tensor(self.signs), positions

    @property
    def signs(self) -> tuple[float, ...]:
        """+1 for a feature's maximum, −1 for its minimum: one code path serves both."""
        words = self.extrema if isinstance(self.extrema, tuple) else (self.extrema,)
        each = words * self.intrinsic_dim if len(words) == 1 else words
        return tuple(1.0 if word == "max" else -1.0 for word in each)

    @property
    def membership(self) -> Tensor:
        """(length, features): does feature i look at position t?"""
        if not self.subsets:
            return torch.ones(self.length, self.intrinsic_dim, dtype=torch.bool)
        inside = torch.zeros(self.length, self.intrinsic_dim, dtype=torch.bool)
        for feature, subset in enumerate(self.subsets):
            inside[list(subset), feature] = True
        return inside

    @property
    def set_sizes(self) -> tuple[int, ...]:
        """How many positions each feature looks at; costs nothing, however long the sequence."""
        if not self.subsets:
            return (self.length,) * self.intrinsic_dim
        return tuple(len(set(subset)) for subset in self.subsets)

    def variance(self, count: int = 1 << 14) -> float:
        """Variance of the target, estimated from `count` sequences of a fixed seed."""
        return float(self.sample(count, seed=(0, 0x7A12))[1].double().var())


def sum_of_maxima(
    length: int,
    intrinsic_dim: int = 4,
    token_dim: int = 4,
    draw: Literal["random-unit", "orthonormal"] = "random-unit",
    seed: int = 0,
) -> Retrieval:
    """y = Σ_i max_t ⟨a_i, x(t)⟩ on Gaussian tokens: the paper's synthetic target (D = 4)."""
    rows = Affine.random_unit if draw == "random-unit" else Affine.orthonormal
    return Retrieval(features=rows(intrinsic_dim, token_dim, seed), length=length)


def max_plus_min(length: int) -> Retrieval:
    """y = max_t x(t) + min_t x(t), scalar tokens uniform on [0, 1]: the paper's example, D = 2."""
    return Retrieval(
        features=Affine(weights=((1.0,), (1.0,))),
        length=length,
        extrema=("max", "min"),
        inputs="uniform",
    )


PRESETS = {
    "paper": sum_of_maxima,
    "paper-d3": lambda length: sum_of_maxima(length, intrinsic_dim=3),
    "max-plus-min": max_plus_min,
}
