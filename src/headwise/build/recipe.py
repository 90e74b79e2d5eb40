"""What the certificate of a construction is computed from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from headwise.build.budget import KnownTask, MapPlans
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.certify.precision import DOUBLE, Precision, state_of
from headwise.build.certify.rounding import Rounding, rounding
from headwise.build.maps.relu import gamma
from headwise.nets import ClassTokenNet
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import rounded_up


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """How a construction certifies its network: what is known of the task, planned and stored."""

    known: KnownTask
    plans: MapPlans
    asked: float | None
    slack: Mapping[str, np.ndarray]
    digests: Mapping[str, Precision]

    @abstractmethod
    def certify(self, task: Retrieval, net: ClassTokenNet) -> Certificate:
        """The certificate of `net` for the task, which may have another length than it was."""

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """What, with the task, makes the same network again."""

    def round_off(
        self, task: Retrieval, net: ClassTokenNet, precision: Precision
    ) -> tuple[Rounding, float]:
        """The network's rounding, and that of the target when it is evaluated to compare with.

        The target is evaluated in double precision, whatever the network computes in.
        """
        params = {name: value.detach().double().numpy() for name, value in net.named_parameters()}
        features, outer = self.known.features, self.known.outer
        target = outer.spread(gamma(task.token_dim + 16) * features.terms)
        target += gamma(task.intrinsic_dim + 16) * float(outer.terms.max())
        found = rounding(net.shape, params, self.slack, self.known.box, task.length, precision)
        return found, target

    def certificate(
        self,
        task: Retrieval,
        net: ClassTokenNet,
        terms: Iterable[Term],
        arithmetic: float,
        precision: Precision,
        tie_gaps: tuple[float, ...] = (),
    ) -> Certificate:
        """The construction's own terms, then those that all constructions have."""
        unit = f"unit round-off 2^{log2(precision.unit):.0f}"
        why = f"rounding in {precision.name} ({unit}), worst case"
        assumptions = self.known.assumptions
        if precision is not DOUBLE:
            assumptions += (f"Tokens are numbers of {precision.name}, as given to the network.",)
        return Certificate(
            terms=(
                *terms,
                *self._approximations(),
                Term("float arithmetic", arithmetic, why),
            ),
            asked=self.asked,
            assumptions=assumptions,
            precision=precision,
            state=state_of(net),
            task=task,
            net=net,
            box=self.known.box,
            constant_error=float((self.known.outer.high - self.known.outer.low).max()) / 2,
            tie_gaps=tie_gaps,
        )

    def _approximations(self) -> tuple[Term, Term]:
        """The terms for the features and for the outer map."""
        features, outer = self.plans
        each = ", ".join(rounded_up(float(error), 3) for error in features.error)
        exact = self.known.features.exact
        return (
            Term(
                "features",
                0.0 if exact else self.known.outer.spread(features.error),
                features.why if exact else f"{features.why}; each f_i within {each}",
            ),
            Term("outer map", float(outer.error.max()), outer.why),
        )
