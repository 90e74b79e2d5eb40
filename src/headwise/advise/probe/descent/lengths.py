"""The trend with the length: with too few heads longer sequences are harder, with enough they need
not be (the reversal of the head-count paper).

Only where the function is at hand, so that the targets of shorter sequences can be computed, and
where the order of the tokens does not matter, so that dropping tokens is fair.
"""

from dataclasses import dataclass

import numpy as np

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.search import HEAD_DIM, TUNING_STEPS, WIDE_STEPS, run
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.advise.probe.samples.function import TargetFunction
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.samples.prepare import prepare
from headwise.theory.head_count import reversal_score

LEAST_LENGTH = 4
EXTRA_HEADS = 4


@dataclass(frozen=True)
class LengthTrend:
    """A descent for each length."""

    descents: dict[int, Descent]

    def errors(self, heads: int) -> dict[int, float]:
        """Held-out error by length."""
        return {n: d.errors[heads] for n, d in self.descents.items() if heads in d.errors}

    def reversal(self, heads: int) -> float | None:
        """How far longer sequences are easier; None where fewer than two lengths were measured."""
        errors = self.errors(heads)
        return reversal_score(errors) if len(errors) > 1 else None


def measure_lengths(
    target: TargetFunction, drawn: np.ndarray, heads: int, seed: int, clock: Clock, jobs: int | None
) -> LengthTrend:
    """Error with `heads` heads and with one fewer, on a quarter, a half and all of the tokens."""
    full = drawn.shape[1]
    plan = DescentPlan(
        seed=seed,
        head_dim=HEAD_DIM,
        most_heads=heads + EXTRA_HEADS,
        least_heads=max(1, heads - 1),
        wide_steps=WIDE_STEPS,
        tuning_steps=TUNING_STEPS,
    )
    descents = {}
    for length in sorted({full // 4, full // 2, full}):
        part = drawn[:, :length]
        if length < LEAST_LENGTH or not target.accepts_length(part):
            continue
        data = prepare(Samples.of(part, target(part), kind="regression"), seed, positions=False)
        (descent,) = run(data, [plan], clock, DescentFile(None, ""), jobs)
        if descent.finished:
            descents[length] = descent
    return LengthTrend(descents)
