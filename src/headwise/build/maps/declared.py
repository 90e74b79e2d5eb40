"""What a user declares of a function, held against samples of it.

A certificate is as good as the constants that it is computed from. Sampling cannot prove them: a
spike that is narrow enough escapes it, which is why a certificate lists them, and says how narrow.
It tries: at the places of `sampling`, and by a search that narrows and moves the steepest pairs. A
pair's slope is the mean of the slopes of its two halves, so one half is never flatter: halving a
pair again and again leads to the steepest place between its ends.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build.maps.named_places import named_places
from headwise.build.maps.relu import UNIT
from headwise.build.maps.sampling import NEAREST, Box, Sampled, sample_pairs
from headwise.core.errors import InputError, require
from headwise.tasks.maps import Function
from headwise.theory.bound import rounded_up
from headwise.theory.checks import not_negative, number

_KEPT = 64  # pairs that the search follows
_ROUNDS = 24
_TOLERANCE = 1e-6


def declarations(function: Function, what: str, tried: Sampled) -> tuple[str, ...]:
    """A sentence for what was sampled, and one for every constant that was declared."""
    named = {
        "a Lipschitz constant of": function.lipschitz,
        "second derivatives of at most": function.curvature,
        "values of at least": function.low,
        "values of at most": function.high,
    }
    verb = "have" if what == "features" else "has"
    sampled = (
        f"The {what} {verb} been sampled at {tried.places / 1e6:.1f} million places, those that "
        "the code names and the steepest of them more closely; points of the box are up to "
        f"{rounded_up(tried.radius, 2)} from the nearest, and a spike narrower than that can hide."
    )
    constants = (
        f"Declared, not proved: the {what} {verb} {words} {_exactly(value)}; sampling did not "
        "contradict it."
        for words, value in named.items()
        if value is not None
    )
    return (sampled, *constants)


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
    wanted, verb = (function.count, "return") if what == "features" else (1, "returns")
    require(
        rows.ndim == 2 and rows.shape[1] == wanted,
        f"the {what} {verb} an array of shape {values.shape} for {len(points)} points; "
        f"({len(points)}, {wanted}) is needed",
    )
    require(bool(np.isfinite(rows).all()), f"the {what} {verb} NaN or infinite values in the box")
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


def check(function: Function, box: Box, what: str) -> Sampled:
    """Refuse declared constants that samples contradict; the places that were looked at."""
    require(
        function.lipschitz is not None or function.curvature is not None,
        f"the {what} {'are' if what == 'features' else 'is'} given as code with no declared "
        "constants: a certificate needs a Lipschitz constant (lipschitz=…) or a bound on second "
        "derivatives (curvature=…)",
    )
    for name in ("lipschitz", "curvature"):
        if getattr(function, name) is not None:
            not_negative(f"{name} of the {what}", getattr(function, name))
    for name in ("low", "high"):
        if getattr(function, name) is not None:
            number(f"{name} of the {what}", getattr(function, name))
    rng = np.random.default_rng([0x11B5, len(box.low)])
    outputs = function.count if what == "features" else 1
    bends = function.curvature is not None
    tried = sample_pairs(
        lambda points: values_of(function, points, what),
        function,
        box,
        outputs,
        bends,
        named_places(function.resolve(), box),
        rng,
    )
    first, second = tried.first, tried.second
    values = values_of(function, np.concatenate([first, second]), what)
    _check_range(function, np.append(values, tried.values), what)
    if function.lipschitz is not None:
        found = _Steepest(function, what, box, bends=False)
        found.search(first, second, rng)
        found.refuse(float(function.lipschitz), "Lipschitz constant")
    if function.curvature is not None:
        found = _Steepest(function, what, box, bends=True)
        found.search(first, second, rng)
        found.refuse(float(function.curvature), "second-derivative bound")
    return tried


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
        near = distance[:, 0] < NEAREST * np.linalg.norm(self.box.high - self.box.low) * 1e-3
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
