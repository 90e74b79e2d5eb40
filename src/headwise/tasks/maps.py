"""The pieces of a retrieval target: features f_i of a token, and the outer map F_0.

Each is data (so that a task can be stored and hashed) that can be called on tensors of any dtype.
`Function` wraps any other callable; named by its import path it can be stored too.
"""

import dataclasses
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.spec import spec
from headwise.core.trust import is_trusted, named_by_user, require_trusted

Rows = tuple[tuple[float, ...], ...]
TensorMap = Callable[[Tensor], Tensor]


class RowsOfNumbers:
    """Features with a row of numbers each, as many as a token has."""

    def _of_features(self) -> Rows:
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many features there are."""
        return len(self._of_features())

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return len(self._of_features()[0])


@spec
class Affine(RowsOfNumbers):
    """f_i(x) = ⟨a_i, x⟩ + b_i, the a_i being the rows of `weights`."""

    weights: Rows
    offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check_rows(self.weights, "weights", self.offsets, "offsets")

    @classmethod
    def random_unit(cls, count: int, token_dim: int, seed: int = 0) -> "Affine":
        """Directions drawn independently and uniformly from the sphere."""
        drawn = np.random.default_rng([seed, count, token_dim]).standard_normal((count, token_dim))
        return cls(weights=_rows(drawn / np.linalg.norm(drawn, axis=1, keepdims=True)))

    @classmethod
    def orthonormal(cls, count: int, token_dim: int, seed: int = 0) -> "Affine":
        """Orthonormal directions, uniformly distributed; there are at most `token_dim`."""
        require(count <= token_dim, f"{token_dim} dimensions hold no {count} orthonormal features")
        drawn = np.random.default_rng([seed, count, token_dim]).standard_normal((token_dim, count))
        return cls(weights=_orthonormal(_rows(drawn.T)))

    def _of_features(self) -> Rows:
        return self.weights

    def __call__(self, tokens: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch features"]:
        values = tokens @ tokens.new_tensor(self.weights).T
        return values + tokens.new_tensor(self.offsets) if self.offsets else values


@spec
class Bowl(RowsOfNumbers):
    """f_i(x) = κ_i ‖x − c_i‖²: a quadratic bowl with its minimum at the centre c_i."""

    centres: Rows
    curvatures: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check_rows(self.centres, "centres", self.curvatures, "curvatures")
        require(all(k > 0 for k in self.curvatures), "the curvatures of bowls are positive")

    @classmethod
    def random(cls, count: int, token_dim: int, seed: int = 0) -> "Bowl":
        """Centres uniform in the cube [0.1, 0.9]^d, so that every minimum lies inside [0, 1]^d."""
        drawn = np.random.default_rng([seed, count, token_dim]).uniform(
            0.1, 0.9, (count, token_dim)
        )
        return cls(centres=_rows(drawn))

    def _of_features(self) -> Rows:
        return self.centres

    def __call__(self, tokens: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch features"]:
        offsets = tokens.unsqueeze(-2) - tokens.new_tensor(self.centres)  # (*batch, features, dim)
        values = offsets.square().sum(-1)
        return values * tokens.new_tensor(self.curvatures) if self.curvatures else values


@spec
class Function:
    """Any function of tensors: features (…, dim) → (…, count), or an outer map (…, count) → (…).

    `function` is 'module:name', or a callable, which can be sampled but not stored. What is known
    of it can be declared: a Lipschitz constant and a bound on second derivatives (both in the
    Euclidean norm, of every component), and the range of its values.
    """

    function: str | TensorMap
    count: int
    token_dim: int = 0
    lipschitz: float | None = None
    curvature: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        require(
            self.count >= 1, f"a function of {self.count} features is none: count is at least 1"
        )
        if isinstance(self.function, str):
            named_by_user(self.function)
            if is_trusted(self.function):
                self.resolve()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels to a worker process with its right to be imported, if it has it."""
        self.resolve()
        return _function, ({f.name: getattr(self, f.name) for f in dataclasses.fields(self)},)

    def resolve(self) -> TensorMap:
        """The callable itself; what only a file names is not imported (`core.trust`)."""
        if not isinstance(self.function, str):
            return self.function
        require_trusted(self.function)
        module, _, name = self.function.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(
                f"no function at {self.function!r} (expected 'module:name')"
            ) from error

    def __call__(self, values: Float[Tensor, "*batch dim"]) -> Tensor:
        return self.resolve()(values)


def _function(fields: dict[str, Any]) -> Function:
    return Function(**fields)


@spec
class Sum:
    """F_0(z) = Σ z_i."""

    def __call__(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        return features.sum(-1)


@spec
class WeightedSum:
    """F_0(z) = Σ w_i z_i."""

    weights: tuple[float, ...]

    def __call__(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        return features @ features.new_tensor(self.weights)


@spec
class Product:
    """F_0(z) = Π z_i."""

    def __call__(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        return torch.prod(features, -1)


Features = Affine | Bowl | Function
OuterMap = Sum | WeightedSum | Product | Function


def largest_overlap(features: Features) -> float:
    """Largest |cosine| between two affine features' directions; 0 for others and for one alone."""
    if not isinstance(features, Affine) or features.count == 1:
        return 0.0
    rows = np.array(features.weights)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = np.abs(rows @ rows.T)[~np.eye(features.count, dtype=bool)]
    return float(cosines.max())


def _rows(array: np.ndarray) -> Rows:
    return tuple(tuple(float(x) for x in row) for row in array)


# The numbers of a task are part of its specification, so they must be the same to the last bit on
# every CPU. LAPACK's sums are not, since their order follows the vector unit; `fsum` is exact.


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _orthonormal(rows: Rows) -> Rows:
    """Gram–Schmidt, each row cleared of the earlier ones twice, which is enough (Kahan)."""
    basis: list[tuple[float, ...]] = []
    for row in rows:
        for earlier in (*basis, *basis):
            share = _dot(row, earlier)
            row = tuple(x - share * y for x, y in zip(row, earlier, strict=True))
        length = math.sqrt(_dot(row, row))
        basis.append(tuple(x / length for x in row))
    return tuple(basis)


def _check_rows(rows: Rows, name: str, per_row: tuple[float, ...], per_row_name: str) -> None:
    require(len(rows) > 0 and len(rows[0]) > 0, f"{name} needs at least one row of one number")
    require(len({len(row) for row in rows}) == 1, f"the rows of {name} differ in length")
    require(
        all(math.isfinite(x) for row in rows for x in row) and all(map(math.isfinite, per_row)),
        f"{name} and {per_row_name} must be finite",
    )
    require(
        len(per_row) in (0, len(rows)),
        f"{per_row_name} needs one number for each of the {len(rows)} features, or none at all",
    )
