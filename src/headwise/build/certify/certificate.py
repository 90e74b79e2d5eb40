"""A certificate: a sup-norm error bound, as the sum of the terms it is made of."""

from dataclasses import dataclass, field
from math import fsum
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build.certify.attack import Attack, Check, measure, search
from headwise.build.certify.precision import Precision, State, state_of
from headwise.build.maps.sampling import Box
from headwise.core.errors import require
from headwise.core.progress import OnProgress, quiet
from headwise.core.shown import Printed
from headwise.nets import ClassTokenNet
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import rounded_up
from headwise.theory.directed import up

_DOUBT = 1e-13  # relative: the terms are products and sums of a few positive numbers


@dataclass(frozen=True)
class Term:
    """One source of error: its bound, and the formula with its numbers."""

    name: str
    value: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Certificate(Printed):
    """|network(X) − target(X)| ≤ `error` for every input whose tokens lie in the box.

    `constant_error` is what a constant errs by at most there: half the range of the target.
    """

    terms: tuple[Term, ...]
    asked: float | None
    assumptions: tuple[str, ...]
    task: Retrieval
    net: ClassTokenNet = field(repr=False)
    box: Box = field(repr=False)
    precision: Precision
    state: State = field(repr=False)
    constant_error: float
    tie_gaps: tuple[float, ...] = field(repr=False, default=())

    @property
    def error(self) -> float:
        """The certified error: the sum of the terms, rounded up."""
        return up(fsum(term.value for term in self.terms), _DOUBT)

    @property
    def vacuous(self) -> bool:
        """Whether answering the middle of the target's range does as well, without looking."""
        return self.error >= self.constant_error

    def term(self, name: str) -> Term:
        """A term by its name."""
        return next(term for term in self.terms if term.name == name)

    def holds_on(self, samples: Float[Tensor, "count length dim"]) -> Check:
        """The error on these inputs, next to the certified one; truthy if none exceeds it."""
        self._check_network()
        require(
            isinstance(samples, Tensor) and samples.ndim == 3 and samples.is_floating_point(),
            "samples is a tensor of numbers, sequences × length × token_dim",
        )
        inputs = samples.to(self.precision.dtype).double()
        require(
            inputs.shape[1:] == (self.task.length, self.task.token_dim),
            f"the certificate is for sequences of shape ({self.task.length}, "
            f"{self.task.token_dim}), not {tuple(inputs.shape[1:])}; for another length see "
            "at_length",
        )
        low, high = (torch.from_numpy(side) for side in self.box)
        require(
            bool(((inputs >= low) & (inputs <= high)).all()),
            "the certificate speaks of tokens in its box only: every coordinate from "
            f"{self.box.low.min():g} to {self.box.high.max():g}",
        )
        return measure(self.net, self.task, inputs, self.error)

    def attack(
        self,
        seconds: float = 5.0,
        seed: int = 0,
        rounds: int | None = None,
        on_progress: OnProgress = quiet,
    ) -> Attack:
        """Search for the worst input; its error next to the certified one.

        Each round's inputs depend on (seed, round) alone, so `rounds` makes a search repeatable.
        """
        self._check_network()
        return search(
            self.net,
            self.task,
            self._representable_box(),
            self.tie_gaps,
            self.error,
            seconds,
            seed,
            rounds,
            on_progress,
        )

    def _check_network(self) -> None:
        """Refuse to speak of a network that has been converted or changed since."""
        require(
            state_of(self.net) == self.state,
            f"this certificate is for the network as it was, in {self.precision.name}; it has been "
            "changed since. The built result's own .certificate is computed anew",
        )

    def _representable_box(self) -> Box:
        """The box, its ends moved inwards to numbers of the network's precision."""
        ends = []
        for side, inwards in zip(self.box, (torch.inf, -torch.inf), strict=True):
            wanted = torch.from_numpy(side)
            near = wanted.to(self.precision.dtype)
            outside = near.double() < wanted if inwards > 0 else near.double() > wanted
            moved = torch.nextafter(near, torch.full_like(near, inwards))
            ends.append(torch.where(outside, moved, near).double().numpy())
        return Box(*ends)

    def to_data(self) -> dict[str, Any]:
        """The certificate as JSON data."""
        return {
            "certified_error": self.error,
            "vacuous": self.vacuous,
            "precision": self.precision.name,
            "asked_error": self.asked,
            "terms": [{"name": t.name, "value": t.value, "why": t.why} for t in self.terms],
            "assumptions": list(self.assumptions),
            "length": self.task.length,
            "box": {"low": self.box.low.tolist(), "high": self.box.high.tolist()},
        }

    def __str__(self) -> str:
        asked = "" if self.asked is None else f" (asked: {self.asked:g})"
        lines = [f"certified sup-norm error: {rounded_up(self.error)}{asked}"]
        if self.vacuous:
            lines[0] += f"; vacuous, a constant errs by at most {rounded_up(self.constant_error)}"
        lines += [f"  {rounded_up(term.value):>10}  {term.name}: {term.why}" for term in self.terms]
        lines += ["  Assumes:"] + [f"  - {sentence}" for sentence in self.assumptions]
        return "\n".join(lines)
