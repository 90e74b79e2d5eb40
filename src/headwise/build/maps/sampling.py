"""Where a function is looked at for steep places, and what that can promise.

A function that is only evaluated is known at those places alone. If no point of the box is farther
than ρ from one of them, a ball of radius ρ or more holds at least one; a spike inside a smaller
ball may hold none, and no number of evaluations rules it out. ρ falls like the number of places to
the power −1/dim: a million are 5e-7 of the box apart in one dimension and 9e-3 in three, where
10⁻³ would take 650 million. So the places are chosen where it pays: a lattice, whose ρ is known and
on which round numbers and corners lie; pairs at every scale down to a millionth of the box, spread
without gaps; pairs along the gradient; lines between the highest and lowest places found; and the
places that the code itself names (`named_places`), at every scale down to a billionth.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NEAREST = 1e-6
"""The closest pairs, relative to the box."""
_PARTS = {1: 10**6, 2: 1000, 3: 100, 4: 30, 5: 15, 6: 9}  # of an axis: a million places or so
_MOST_VALUES = 1 << 22  # of all outputs on the lattice
_CHUNK = 1 << 17
_PAIRS = 1 << 18
_ALONG_GRADIENTS = 1 << 15
_CANDIDATES = 128  # of a lattice, for each axis and stride
_EXTREMES = 8  # places at each end of the values, between which lines are drawn
_ON_A_LINE = 256

Points = Float[np.ndarray, "count dim"]
Values = Callable[[Points], Float[np.ndarray, "count out"]]


class Box(NamedTuple):
    """Lower and upper bounds, one pair a coordinate."""

    low: Float[np.ndarray, " dim"]
    high: Float[np.ndarray, " dim"]

    def draw(self, rng: np.random.Generator, count: int) -> Points:
        """Points uniform in the box."""
        return self.low + (self.high - self.low) * rng.random((count, len(self.low)))

    @property
    def reach(self) -> Float[np.ndarray, " dim"]:
        """The largest size of each coordinate."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


class Sampled(NamedTuple):
    """Pairs of places; how many there are in all, how far a point of the box can be from the
    nearest, and the least and largest value on the lattice."""

    first: Points
    second: Points
    places: int
    radius: float
    values: tuple[float, float]


def sample_pairs(
    values: Values,
    slopes: Callable[[Tensor], Tensor],
    box: Box,
    outputs: int,
    bends: bool,
    named: Float[np.ndarray, "places dim"],
    rng: np.random.Generator,
) -> Sampled:
    """Pairs of places between which a function may be steepest or, for `bends`, bend most.

    `slopes` is the function on tensors, for its gradients; where it has none, none are used.
    `named` are places to be looked at more closely.
    """
    lattice = _Lattice(box, outputs)
    table = np.concatenate([values(part) for part in lattice.chunks()])
    pairs = [
        _at_every_scale(box, rng),
        lattice.steepest(table, bends),
        _between_extremes(lattice.points(_extremes(table)), rng),
        _along_gradients(slopes, box, rng),
        _about(named, box, rng),
    ]
    first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
    ends = float(table.min()), float(table.max())
    return Sampled(first, second, lattice.count + 2 * len(first), lattice.radius, ends)


class _Lattice:
    """A regular lattice over the box, its corners included."""

    def __init__(self, box: Box, outputs: int) -> None:
        dim = len(box.low)
        fits = int((_MOST_VALUES / outputs) ** (1 / dim)) - 1
        parts = max(1, min(_PARTS.get(dim, 1), fits))
        self.box, self.shape = box, (parts + 1,) * dim
        self.count = int(np.prod(self.shape))
        self.step = (box.high - box.low) / parts
        self.radius = float(np.linalg.norm(self.step)) / 2

    def points(self, index: np.ndarray) -> Points:
        """The places with these numbers."""
        places = np.stack(np.unravel_index(index, self.shape), -1)
        return np.clip(self.box.low + places * self.step, self.box.low, self.box.high)

    def chunks(self) -> list[Points]:
        """All places, in order, a bounded number at a time."""
        starts = range(0, self.count, _CHUNK)
        return [self.points(np.arange(s, min(s + _CHUNK, self.count))) for s in starts]

    def steepest(self, table: np.ndarray, bends: bool) -> tuple[Points, Points]:
        """The pairs along the axes with the largest first and, for bends, second differences.

        A slope over several steps is at most the largest over one of them; a bend is looked for at
        every stride, since rounding hides it at the smallest.
        """
        grid = np.ascontiguousarray(table.T).reshape(-1, *self.shape)
        numbers = np.arange(self.count).reshape(self.shape)
        pairs = []
        for axis, size in enumerate(self.shape):

            def cut(array: np.ndarray, start: int, stop: int, axis: int = axis) -> np.ndarray:
                last = array.ndim - len(self.shape) + axis
                return array[(slice(None),) * last + (slice(start, stop),)]

            change = np.abs(cut(grid, 1, size) - cut(grid, 0, size - 1)).max(0)
            pairs.append(_largest(change, cut(numbers, 0, size - 1), cut(numbers, 1, size)))
            for stride in (4**power for power in range(10 if bends else 0)):
                rest = size - 2 * stride
                if rest > 0:
                    bend = cut(grid, 0, rest) + cut(grid, 2 * stride, size)
                    bend = np.abs(bend - 2 * cut(grid, stride, size - stride)).max(0)
                    ends = cut(numbers, 0, rest), cut(numbers, 2 * stride, size)
                    pairs.append(_largest(bend, *ends))
        first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return self.points(first), self.points(second)


def _largest(
    sizes: np.ndarray, one: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the two ends where the size is among the largest."""
    best = np.argpartition(-sizes.ravel(), min(_CANDIDATES, sizes.size) - 1)[:_CANDIDATES]
    return one.ravel()[best], other.ravel()[best]


def _at_every_scale(box: Box, rng: np.random.Generator) -> tuple[Points, Points]:
    """Places without gaps, and for each a second one, from the box's size down to a millionth."""
    first = _spread(box, rng, _PAIRS)
    nearness = 10.0 ** -rng.uniform(0, -np.log10(NEAREST), (_PAIRS, 1))
    return first, first + (box.draw(rng, _PAIRS) - first) * nearness


def _spread(box: Box, rng: np.random.Generator, count: int) -> Points:
    """Points without gaps: multiples of irrational steps (in one dimension the golden ratio's)."""
    dim = len(box.low)
    root = 2.0
    for _ in range(60):  # of x^(dim + 1) = x + 1
        root = (1 + root) ** (1 / (dim + 1))
    steps = root ** -np.arange(1.0, dim + 1)
    places = (rng.random(dim) + np.arange(count)[:, None] * steps) % 1.0
    return box.low + (box.high - box.low) * places


def _extremes(table: np.ndarray) -> np.ndarray:
    """Numbers of the places with the least and the largest values."""
    kept = min(_EXTREMES, len(table)) - 1
    ends = [
        np.argpartition(sign * table[:, output], kept)[: kept + 1]
        for output in range(min(4, table.shape[1]))
        for sign in (1, -1)
    ]
    return np.unique(np.concatenate(ends))


def _between_extremes(
    places: Float[np.ndarray, "places dim"], rng: np.random.Generator
) -> tuple[Points, Points]:
    """Neighbours on the lines between two of these places."""
    one, other = places[rng.integers(len(places), size=(2, 2 * _EXTREMES))]
    share = np.sort(rng.random((len(one), _ON_A_LINE, 1)), axis=1)
    line = one[:, None] + (other - one)[:, None] * share
    dim = places.shape[1]
    return line[:, :-1].reshape(-1, dim), line[:, 1:].reshape(-1, dim)


def _along_gradients(
    slopes: Callable[[Tensor], Tensor], box: Box, rng: np.random.Generator
) -> tuple[Points, Points]:
    """A step along the gradient of each place, which is where the function is steepest there."""
    first = _spread(box, rng, _ALONG_GRADIENTS)
    nothing = np.zeros((0, len(box.low)))
    try:
        with torch.enable_grad():
            inputs = torch.from_numpy(first).requires_grad_()
            answers = slopes(inputs).reshape(len(first), -1)
            chosen = torch.from_numpy(rng.integers(answers.shape[1], size=len(first)))
            one = answers[torch.arange(len(first)), chosen].sum()
            found = torch.autograd.grad(one, inputs)[0].numpy()
    except Exception:  # the user's code need not be differentiable: then nothing is tried here
        return nothing, nothing
    length = np.linalg.norm(found, axis=1, keepdims=True)
    usable = np.isfinite(length[:, 0]) & (length[:, 0] > 0)
    first, found = first[usable], found[usable] / length[usable]
    scale = 10.0 ** -rng.uniform(2, -np.log10(NEAREST), (len(first), 1))
    away = np.linalg.norm(box.high - box.low) * scale * found
    return first, np.clip(first + away, box.low, box.high)


def _about(
    places: Float[np.ndarray, "places dim"], box: Box, rng: np.random.Generator
) -> tuple[Points, Points]:
    """Each place with others around it, a tenth of the box away down to a billionth."""
    scales = 10.0 ** -np.arange(1, 10)
    first = np.repeat(places, 2 * len(scales), axis=0)
    away = rng.standard_normal(first.shape)
    away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
    size = np.linalg.norm(box.high - box.low) * np.tile(scales, 2 * len(places))[:, None]
    return first, np.clip(first + size * away, box.low, box.high)
