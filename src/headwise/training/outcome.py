"""What comes of training one seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from torch import Tensor


@dataclass(frozen=True)
class Outcome:
    """What came of one seed.

    `error` is the validation error that counts, in `unit` (None if no evaluation was finite), and
    `error_last` the one after the last step; `curve` holds (step, validation error, mean training
    loss since the evaluation before). `params` are for raw data. `facts` are other numbers worth
    keeping, by name.
    """

    seed: int
    error: float | None
    error_last: float | None
    unit: str
    best_step: int | None
    diverged: bool
    curve: tuple[tuple[int, float | None, float | None], ...]
    engine: str
    engine_reason: str
    params: dict[str, Tensor]
    facts: Mapping[str, float] = field(default_factory=dict)


def make_outcome(
    seed: int,
    measured: Sequence[tuple[int, float, float]],
    unit: str,
    engine: tuple[str, str],
    params: dict[str, Tensor],
) -> Outcome:
    """The outcome of a training that measured (step, error, mean loss): the best error counts.

    What is not finite is None. `engine` is its name and why it was picked.
    """
    curve = [(step, _finite(error), _finite(loss)) for step, error, loss in measured]
    finite = [(error, step) for step, error, _ in curve if error is not None]
    best, best_step = min(finite) if finite else (None, None)
    last = curve[-1]
    return Outcome(
        seed=seed,
        error=best,
        error_last=last[1],
        unit=unit,
        best_step=best_step,
        diverged=last[1] is None or last[2] is None,
        curve=tuple(curve),
        engine=engine[0],
        engine_reason=engine[1],
        params=params,
    )


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
