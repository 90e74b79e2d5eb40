"""What a user declares of a function, held against samples of it.

A certificate is as good as the constants that it is computed from. Sampling cannot prove them: a
spike that is narrow enough escapes it, which is why a certificate lists them. It tries: pairs at
every scale down to a millionth of the box, evenly spread over it, a lattice with its round numbers
and corners, and a search that narrows and moves the steepest pairs. A pair's slope is the mean of
the slopes of its two halves, so one half is never flatter: halving a pair again and again leads to
the steepest place between its ends.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build.maps.relu import UNIT
from headwise.core.errors import InputError, require
from headwise.tasks.maps import Function
from headwise.theory.checks import not_negative, number

_PAIRS = 1 << 18
_LATTICE = 20_000  # points of it, at most
_KEPT = 64  # pairs that the search follows
_ROUNDS = 24
_NEAREST = 1e-6  # the closest pairs, relative to the box
_TOLERANCE = 1e-6


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


def declarations(function: Function, what: str) -> tuple[str, ...]:
    """A sentence for every constant that was declared, as a certificate lists them."""
    named = {
        "a Lipschitz constant of": function.lipschitz,
        "second derivatives of at most": function.curvature,
        "values of at least": function.low,
        "values of at most": function.high,
    }
    verb = "have" if what == "features" else "has"
    return tuple(
        f"Declared, not proved: the {what} {verb} {words} {_exactly(value)}; sampling did not "
        "contradict it."
        for words, value in named.items()
        if value is not None
    )


def _exactly(value: float) -> str:
    """All digits, and no more: a declared constant is not rounded."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def values_of(function: Function, points: Float[np.ndarray, "count dim"], what: str) -> np.ndarray:
    """(count, outputs) in double precision; an outer map has one output."""
    with torch.no_grad():
        values = answer_of(
            lambda tokens: function(tokens).double().numpy(),
            torch.from_numpy(points),
            f"the {what}",
        )
    rows = values.reshape(len(points), -1) if values.size % len(points) == 0 else values
    wanted = function.count if what == "features" else 1
    require(
        rows.ndim == 2 and rows.shape[1] == wanted,
        f"the {what} return an array of shape {values.shape} for {len(points)} points; "
        f"({len(points)}, {wanted}) is needed",
    )
    require(bool(np.isfinite(rows).all()), f"the {what} return NaN or infinite values in the box")
    return rows


def answer_of(function: Callable[[Tensor], Any], points: Tensor, what: str) -> Any:
    """What the user's code returns; whatever it raises becomes a sentence."""
    try:
        return function(points)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{what}, called on a tensor of shape {tuple(points.shape)}, raised "
            f"{type(error).__name__}: {error}"
        ) from error


def check(function: Function, box: Box, what: str) -> None:
    """Refuse declared constants that samples contradict."""
    require(
        function.lipschitz is not None or function.curvature is not None,
        f"the {what} are given as code with no declared constants: a certificate needs a Lipschitz "
        "constant (lipschitz=…) or a bound on second derivatives (curvature=…)",
    )
    for name in ("lipschitz", "curvature"):
        if getattr(function, name) is not None:
            not_negative(f"{name} of the {what}", getattr(function, name))
    for name in ("low", "high"):
        if getattr(function, name) is not None:
            number(f"{name} of the {what}", getattr(function, name))
    rng = np.random.default_rng([0x11B5, len(box.low)])
    first, second = _pairs(box, rng)
    _check_range(function, values_of(function, np.concatenate([first, second]), what), what)
    if function.lipschitz is not None:
        found = _Steepest(function, what, box, bends=False)
        found.search(first, second, rng)
        found.refuse(float(function.lipschitz), "Lipschitz constant")
    if function.curvature is not None:
        found = _Steepest(function, what, box, bends=True)
        found.search(first, second, rng)
        found.refuse(float(function.curvature), "second-derivative bound")


def _pairs(box: Box, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs at every scale, and neighbours along each axis of a lattice of round numbers."""
    size, dim = box.high - box.low, len(box.low)
    first = _spread(box, rng, _PAIRS)
    nearness = 10.0 ** -rng.uniform(0, -np.log10(_NEAREST), (_PAIRS, 1))
    second = first + (box.draw(rng, _PAIRS) - first) * nearness
    parts = {1: 5000, 2: 100, 3: 20}.get(dim, 4)  # tenths and hundredths are on it
    axes = [np.linspace(low, high, parts + 1) for low, high in zip(*box, strict=True)]
    if (parts + 1) ** dim <= _LATTICE:
        lattice = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dim)
    else:
        lattice = np.stack([rng.choice(axis, _LATTICE) for axis in axes], -1)
    neighbours = []
    for axis in range(dim):
        step = np.zeros(dim)
        step[axis] = size[axis] / parts
        inwards = np.where(lattice[:, axis] + step[axis] / 2 > box.high[axis], -1.0, 1.0)
        neighbours.append(np.clip(lattice + inwards[:, None] * step, box.low, box.high))
    lattices = np.tile(lattice, (dim, 1))
    return np.concatenate([first, lattices]), np.concatenate([second, *neighbours])


def _spread(box: Box, rng: np.random.Generator, count: int) -> np.ndarray:
    """Points without gaps: multiples of irrational steps (in one dimension the golden ratio's)."""
    dim = len(box.low)
    root = 2.0
    for _ in range(60):  # of x^(dim + 1) = x + 1
        root = (1 + root) ** (1 / (dim + 1))
    steps = root ** -np.arange(1.0, dim + 1)
    places = (rng.random(dim) + np.arange(count)[:, None] * steps) % 1.0
    return box.low + (box.high - box.low) * places


class _Steepest:
    """The steepest (or most bent) pair found, for one function."""

    def __init__(self, function: Function, what: str, box: Box, bends: bool) -> None:
        self.function, self.what, self.box, self.bends = function, what, box, bends
        self.largest, self.output = -np.inf, 0
        self.pair = (box.low, box.high)

    def search(self, first: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> None:
        """Follow the steepest pairs: halve them, move them, shrink and stretch them."""
        rate = self._rate(first, second)
        order = np.argsort(-rate)[:_KEPT]
        first, second = first[order], second[order]
        size = self.box.high - self.box.low
        for _ in range(_ROUNDS):
            middle = (first + second) / 2
            shift = (
                size
                * rng.standard_normal(first.shape)
                * 10.0 ** rng.uniform(-7, -1, (len(first), 1))
            )
            along = (second - first) * rng.uniform(-1, 1, (len(first), 1))
            starts = np.concatenate([first, middle, first + shift, first + along, first, middle])
            ends = np.concatenate(
                [middle, second, second + shift, second + along, second + shift, middle + shift]
            )
            starts, ends = (
                np.clip(np.concatenate([old, new]), self.box.low, self.box.high)
                for old, new in ((first, starts), (second, ends))
            )
            order = np.argsort(-self._rate(starts, ends), kind="stable")[:_KEPT]
            first, second = starts[order], ends[order]

    def refuse(self, declared: float, name: str) -> None:
        """Raise if what was found is more than what was declared."""
        if self.largest > declared * (1 + _TOLERANCE):
            first, second = (np.round(each, 9).tolist() for each in self.pair)
            raise InputError(
                f"the declared {name} of the {self.what} is {declared:g}, but between {first} and "
                f"{second} component {self.output + 1} shows {self.largest:.4g}: declare at least "
                "that much (a function that computes in single precision jumps by its rounding)"
            )

    def _rate(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Slopes, or second differences, that rounding cannot explain; the largest is kept."""
        values = [first, second, (first + second) / 2] if self.bends else [first, second]
        at = [values_of(self.function, points, self.what) for points in values]
        distance = np.linalg.norm(second - first, axis=1, keepdims=True)
        largest = np.max(np.abs(at), axis=0)
        change = 4 * np.abs(at[0] + at[1] - 2 * at[2]) if self.bends else np.abs(at[1] - at[0])
        moved = 8 * UNIT * (1 + self.box.reach.max())  # of a point when a pair's middle is rounded
        slack = 256 * UNIT * (1 + largest) * (4 if self.bends else 1)
        slope = np.abs(at[1] - at[0]).max() / max(float(distance.max()), moved)
        change = np.maximum(0.0, change - slack - (8 * slope * moved if self.bends else 0.0))
        power = distance**2 if self.bends else distance
        near = distance[:, 0] < _NEAREST * np.linalg.norm(self.box.high - self.box.low) * 1e-3
        rates = np.where(near[:, None], 0.0, change / np.where(power > 0, power, np.inf))
        row, output = np.unravel_index(int(rates.argmax()), rates.shape)
        if rates[row, output] > self.largest:
            self.largest, self.output = float(rates[row, output]), int(output)
            self.pair = (first[row], second[row])
        return np.asarray(rates.max(1))


def _check_range(function: Function, values: np.ndarray, what: str) -> None:
    low, high = float(values.min()), float(values.max())
    slack = _TOLERANCE * (1 + high - low)
    require(
        (function.low is None or low >= function.low - slack)
        and (function.high is None or high <= function.high + slack),
        f"the declared range of the {what} is [{function.low}, {function.high}], but samples "
        f"reach from {low:.6g} to {high:.6g}",
    )
