"""A task of the zoo: how to draw it, and which answers about it are right.

What "heads needed" means: the fewest heads with which one attention layer, read at a class token
whose query is a constant, approximates the target as closely as one likes with weights, widths and
head dimensions (up to 8) that stay moderate. The network of the tokens, which may see the
position, and the readout are free. Four facts prove the numbers of the classes:

- **Average.** With constant scores a head gives (1/T) Σ_t v(x_t, t), for any vector-valued v. So
  F((1/T) Σ_t v(x_t, t)) needs one head, and so does a sum, of T terms or of those not padded.
- **Choice.** With scores β s(x_t, t) a head gives v(x_t, t) of the token with the largest s, as β
  grows. So F(v of the token that s chooses) needs one head, and D such choices need D at most.
  With β = 1 it gives Σ e^s v / Σ e^s: a softmax-weighted mean needs one head.
- **Extrema.** D extrema that all matter to the target, of features attained at different tokens,
  need D heads (theorem 2(2) on head count): with fewer, sequences exist whose targets differ and
  whose attention outputs do not, unless weights or widths grow exponentially.
- **Apart.** An average and an extremum do not share a head: a head sharp enough for the extremum
  gives any other token a weight e^{-β gap}, and to read the average from what is left takes
  weights of e^{β gap}. So they add up.

Where a function of pairs of tokens is asked for, one layer does not suffice with moderate head
dimensions (one wide head of T·d dimensions can always copy the sequence, theorem 2(3)): the right
answer is a refusal. `REFUSE` is also right where one head suffices in principle but the target
jumps, so that the error of any trained network falls gradually and no number stands out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

REFUSE: Final = "refuse"
Answer = int | Literal["refuse"]
Value = Callable[[Tensor], Tensor]
Tokens = Callable[[Generator, int], np.ndarray]
_TOKENS, _DATA, _CALLS, _MOMENTS = 0x2001, 0x2002, 0x2003, 0x2004


class ZooData(NamedTuple):
    """What `headwise.probe` is given where only data are: a list of sequences may be ragged."""

    inputs: Any
    targets: np.ndarray
    mask: np.ndarray | None = None


Delivery = Callable[[Generator, np.ndarray, np.ndarray], ZooData]
"""Data from fresh tokens and their clean values: noise, labels, padding, repetition."""


def right(*answers: Answer) -> frozenset[Answer]:
    """The set of right answers."""
    return frozenset(answers)


@dataclass(frozen=True)
class ZooTask:
    """`acceptable` are the right answers: numbers of heads, and 'refuse' where that is right.

    `tokens(rng, count)` draws (count, length, token_dim); `value` maps them, in double precision,
    to the target without noise, or to whole numbers if the target is a label. `noise` is in units
    of the target's standard deviation, and fresh in every call. `deliver` turns both into data in
    another way. Not `callable_`: the task makes sense as data alone.

    `coarsely` is a share of the target's variance, and a number of heads that leaves no more: an
    answer is a number to a stated precision, and where that is this share or coarser, the number
    is right as well. An answer that claims to see more than it does stays wrong.
    """

    about: str
    acceptable: frozenset[Answer]
    tokens: Tokens
    value: Value
    noise: float = 0.0
    labels: bool = False
    deliver: Delivery | None = None
    callable_: bool = True
    in_numpy: bool = False
    name: str = ""
    coarsely: tuple[float, int] | None = None

    def sample(self, count: int, seed: Sequence[int]) -> ZooData:
        """So many sequences with targets, as data; equal seeds, equal data."""
        inputs = self.tokens(np.random.default_rng([*seed, _TOKENS]), count)
        clean, rng = self._clean(inputs), np.random.default_rng([*seed, _DATA])
        if self.deliver is not None:
            return self.deliver(rng, inputs, clean)
        return ZooData(inputs.astype(np.float32), self._noisy(clean, rng, clean.std()))

    @property
    def target(self) -> Callable[[Any], Any] | None:
        """The function, with fresh noise in every call; None where only data make sense.

        Half of the tasks know torch, so that they can be differentiated, and half numpy alone.
        """
        if not self.callable_:
            return None
        rng = np.random.default_rng(_CALLS)
        scale = self._scale() if self.noise else 0.0

        def in_torch(inputs: Tensor) -> Tensor:
            values = self.value(inputs)
            if not scale:
                return values
            return values + torch.from_numpy(self.noise * scale * rng.standard_normal(len(values)))

        def in_numpy(inputs: np.ndarray) -> np.ndarray:
            return in_torch(torch.from_numpy(np.asarray(inputs, np.float64))).numpy()

        return in_numpy if self.in_numpy else in_torch

    @property
    def sampler(self) -> Callable[[int, Sequence[int]], Any] | None:
        """What draws the inputs of `target`."""
        if not self.callable_:
            return None

        def draw(count: int, seed: Sequence[int]) -> Any:
            drawn = self.tokens(np.random.default_rng([*seed, _TOKENS]), count)
            return drawn if self.in_numpy else torch.from_numpy(drawn)

        return draw

    def right_to(self, precision: float | None) -> frozenset[Answer]:
        """The right answers for who states that smaller parts of the target are not seen."""
        if self.coarsely is None or precision is None or precision < self.coarsely[0]:
            return self.acceptable
        return self.acceptable | {self.coarsely[1]}

    def is_right(self, heads: int | None, precision: float | None = None) -> bool:
        """Is this number, or no number, a right answer?"""
        return (REFUSE if heads is None else heads) in self.right_to(precision)

    def __str__(self) -> str:
        noise = f", noise {100 * self.noise:.2f} %" if self.noise else ""
        return f"{self.name}: {self.about}{noise}"

    def _clean(self, inputs: np.ndarray) -> np.ndarray:
        return self.value(torch.from_numpy(inputs)).numpy()

    def _noisy(self, clean: np.ndarray, rng: Generator, scale: float) -> np.ndarray:
        return clean + self.noise * scale * rng.standard_normal(len(clean)) if self.noise else clean

    def _scale(self) -> float:
        return float(self._clean(self.tokens(np.random.default_rng(_MOMENTS), 4096)).std())


def some_noise(rng: Generator) -> float:
    """None in half of the tasks, in the others up to 1 % of the target's deviation."""
    return float(rng.uniform(0, 0.01)) if rng.random() < 0.5 else 0.0
