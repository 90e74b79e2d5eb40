"""How large the trial decoders can be: what a time budget buys, as a function of it alone.

Trials as wide and as long as the plan come first: narrower ones can turn the order round (on Tiny
Shakespeare many heads and then one a layer beat uniform at width 32 and length 64 by 0.02 nats,
and lost to it at 64 and 128 by 0.04). So first the race has fewer seeds; only where the shortest
race does not fit are widths and lengths divided (heads stay, their dimensions shrink), and the
plan warns. Where not even that fits, it is begun, and the same command goes on with it. The choice
rests on a nominal speed and not on a clock, so that equal requests give equal plans on every
machine.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from headwise.advise.plan.race import Rungs
from headwise.advise.plan.request import PlanRequest
from headwise.allocation.fill import Layers
from headwise.nets import DecoderShape
from headwise.training import TextTraining

_FLOPS_PER_SECOND = 2.0e10  # of one core; a step also takes some time for its operations
_SECONDS_PER_LAYER = 0.002
_ENOUGH_STEPS, _FEWEST_STEPS, _MOST_STEPS = 300, 60, 20_000
_TOKENS_A_STEP = 1024
_NARROWEST, _SHORTEST = 32, 32
_OVERHEAD = 0.8  # the share of the time that goes into training


@dataclass(frozen=True)
class TrialScale:
    """Trial decoders: the plan's width and length divided by `factor` and `shorter`.

    All trials together take about `whole_seconds` on cores of usual speed.
    """

    width: int
    length: int
    budget: int
    factor: int
    shorter: int
    multiple: int
    steps: int
    batch: int
    rungs: Rungs
    whole_seconds: float

    @property
    def whole(self) -> bool:
        """Whether trials are as wide and as long as the plan."""
        return self.factor == self.shorter == 1

    def decoder(
        self,
        layers: Layers,
        vocabulary: int,
        positions: Literal["rope", "learned"] = "rope",
    ) -> DecoderShape:
        """A decoder with these layers; one that is to be cut needs learned positions."""
        return DecoderShape(
            vocabulary=vocabulary,
            width=self.width,
            layers=layers,
            ffn=4 * self.width,
            length=self.length,
            positions=positions,
        )

    def training(self) -> TextTraining:
        """A rate that suits the width (∝ 1/√width, .008 at 64)."""
        return TextTraining(
            steps=self.steps,
            rate=0.008 * sqrt(64 / self.width),
            batch=self.batch,
            validation=max(64, 32_768 // self.length),
            evaluations=1,
        )


def choose_scale(
    request: PlanRequest, *, vocabulary: int, candidates: int, others: int
) -> TrialScale:
    """The longest race, and then the largest trials, that fit with enough steps each.

    `others` counts the trainings besides the race's. Where nothing fits: the quickest.
    """
    width, length, layers = request.width, request.length, request.layers
    available = _OVERHEAD * request.seconds * request.workers
    best: TrialScale | None = None
    for factor, shorter in ((1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8)):
        if factor * shorter > 1 and (
            width // factor < _NARROWEST or length // shorter < min(length, _SHORTEST)
        ):
            continue
        size, span = width // factor, length // shorter
        batch = max(1, round(_TOKENS_A_STEP / span))
        smallest = max(2, request.multiple // factor)  # RoPE turns pairs
        allowed = max(request.budget // factor**2, 4 * size * smallest * layers)
        step = _step_seconds(size, span, allowed, layers, vocabulary, batch)
        for each in request.rungs:
            a_step = (each.runs(candidates) + others) * step  # of all trainings
            fitting = min(_MOST_STEPS, int(available / a_step))
            steps = max(_FEWEST_STEPS, fitting)
            seconds = steps * a_step / (_OVERHEAD * request.workers)
            scale = TrialScale(
                size, span, allowed, factor, shorter, smallest, steps, batch, each, seconds
            )
            if fitting >= _ENOUGH_STEPS:
                return scale
            if best is None or (steps, -seconds) > (best.steps, -best.whole_seconds):
                best = scale
    assert best is not None
    return best


def _step_seconds(
    width: int, length: int, budget: int, layers: int, vocabulary: int, batch: int
) -> float:
    """Nominal: six operations a weight and token, twelve an attended pair and coordinate."""
    weights = budget + layers * 8 * width**2 + vocabulary * width
    attended = 6 * length * budget / (4 * width) * 2
    return (
        batch * length * (6 * weights + attended) / _FLOPS_PER_SECOND + layers * _SECONDS_PER_LAYER
    )
