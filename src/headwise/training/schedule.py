"""How long and how fast to train, and when to evaluate: what all specifications have in common."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, pi

import numpy as np
from jaxtyping import Float

from headwise.core.errors import require


@dataclass(frozen=True, kw_only=True)
class RateSchedule:
    """How long and how fast: the fields that every training's specification has.

    `steps` of AdamW, each on `batch` sequences. The learning rate grows to `rate` in the first
    share `warmup` of them. The networks are evaluated `evaluations` times, evenly spaced; the last
    time is at the end.
    """

    steps: int
    rate: float
    batch: int
    warmup: float
    weight_decay: float = 0.0
    evaluations: int


def learning_rates(training: RateSchedule) -> Float[np.ndarray, " steps"]:
    """Linear warm-up to `rate`, then half a cosine down to zero."""
    warm = round(training.warmup * training.steps)
    steps = training.steps
    return np.array(
        [
            training.rate
            * (
                (step + 1) / warm
                if step < warm
                else (1 + cos(pi * (step - warm) / (steps - warm))) / 2
            )
            for step in range(steps)
        ]
    )


def evaluation_segments(training: RateSchedule) -> Iterator[tuple[int, int]]:
    """Step ranges [first, last) after each of which the networks are evaluated."""
    count = min(training.evaluations, training.steps)
    ends = [round(training.steps * (index + 1) / count) for index in range(count)]
    return iter(zip([0, *ends], ends, strict=False))


def check_schedule(training: RateSchedule) -> None:
    """Refuse what no training can do, with a sentence."""
    for name in ("steps", "batch", "evaluations"):
        require(
            getattr(training, name) >= 1, f"{name} is {getattr(training, name)}; the least is 1"
        )
    require(training.rate > 0, f"the learning rate is {training.rate}; it must be positive")
    require(0 <= training.warmup < 1, "warmup is a fraction of the steps, from 0 up to 1")
    require(training.weight_decay >= 0, "weight_decay is not negative")


def check_betas(betas: tuple[float, ...]) -> None:
    """Refuse what cannot be AdamW's two decay rates."""
    require(
        len(betas) == 2 and all(0 <= beta < 1 for beta in betas),
        "betas are two numbers from 0 up to 1",
    )
