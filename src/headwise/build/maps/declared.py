"""What a user declares of a function, held against samples of it.

A certificate is as good as the constants that it is computed from. Sampling cannot prove them,
but it finds those that are plainly too small.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from headwise.core.errors import InputError, require
from headwise.tasks.maps import Function

_PAIRS = 4096
_TOLERANCE = 1e-6  # rounding in a quotient of differences


class Box(NamedTuple):
    """Lower and upper bounds, one pair a coordinate."""

    low: Float[np.ndarray, " dim"]
    high: Float[np.ndarray, " dim"]

    def draw(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "count dim"]:
        """Points uniform in the box."""
        return self.low + (self.high - self.low) * rng.random((count, len(self.low)))

    @property
    def reach(self) -> Float[np.ndarray, " dim"]:
        """The largest size of each coordinate."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def values_of(function: Function, points: Float[np.ndarray, "count dim"], what: str) -> np.ndarray:
    """(count, outputs) in double precision; an outer map has one output."""
    with torch.no_grad():
        values = function(torch.from_numpy(points)).double().numpy()
    rows = values.reshape(len(points), -1) if values.size % len(points) == 0 else values
    wanted = function.count if what == "features" else 1
    require(
        rows.ndim == 2 and rows.shape[1] == wanted,
        f"the {what} return an array of shape {values.shape} for {len(points)} points; "
        f"({len(points)}, {wanted}) is needed",
    )
    require(bool(np.isfinite(rows).all()), f"the {what} return NaN or infinite values in the box")
    return rows


def check(function: Function, box: Box, what: str) -> None:
    """Refuse declared constants that samples contradict."""
    require(
        function.lipschitz is not None or function.curvature is not None,
        f"the {what} are given as code with no declared constants: a certificate needs a Lipschitz "
        "constant (lipschitz=…) or a bound on second derivatives (curvature=…)",
    )
    for name in ("lipschitz", "curvature"):
        value = getattr(function, name)
        require(value is None or 0 <= value < np.inf, f"{name} of the {what} is {value}; it is ≥ 0")
    rng = np.random.default_rng([0x11B5, len(box.low)])
    first, other = box.draw(rng, _PAIRS), box.draw(rng, _PAIRS)
    nearness = 10.0 ** -rng.uniform(0, 4, (_PAIRS, 1))  # pairs at every scale
    second = first + (other - first) * nearness
    at_first, at_second, at_middle = (
        values_of(function, points, what) for points in (first, second, (first + second) / 2)
    )
    distance = np.linalg.norm(second - first, axis=1, keepdims=True)
    distance[distance == 0] = np.inf
    _check_range(function, np.concatenate([at_first, at_second]), what)
    if function.lipschitz is not None:
        slopes = np.abs(at_second - at_first) / distance
        _refuse(slopes, first, second, float(function.lipschitz), "Lipschitz constant", what)
    if function.curvature is not None:
        bends = 4 * np.abs(at_first + at_second - 2 * at_middle) / distance**2
        bends[distance[:, 0] < 0.01 * np.linalg.norm(box.high - box.low)] = 0  # only rounding there
        _refuse(bends, first, second, float(function.curvature), "second-derivative bound", what)


def _check_range(function: Function, values: np.ndarray, what: str) -> None:
    low, high = float(values.min()), float(values.max())
    slack = _TOLERANCE * (1 + high - low)
    require(
        (function.low is None or low >= function.low - slack)
        and (function.high is None or high <= function.high + slack),
        f"the declared range of the {what} is [{function.low}, {function.high}], but samples "
        f"reach from {low:.6g} to {high:.6g}",
    )


def _refuse(
    found: np.ndarray, first: np.ndarray, second: np.ndarray, declared: float, name: str, what: str
) -> None:
    row, output = np.unravel_index(int(found.argmax()), found.shape)
    largest = float(found[row, output])
    if largest > declared * (1 + _TOLERANCE) + _TOLERANCE * 1e-3:
        raise InputError(
            f"the declared {name} of the {what} is {declared:g}, but between "
            f"{np.round(first[row], 4).tolist()} and {np.round(second[row], 4).tolist()} "
            f"component {int(output) + 1} shows {largest:.4g}: declare at least that much"
        )
