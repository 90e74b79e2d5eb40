"""From many heads to one: error against the number of heads, along one trained network.

Networks with barely enough heads often get stuck: trained from scratch they look as if a head
were missing. A network with many heads finds every feature; then heads are taken away one by one,
each time the one missed least (`removal.py`). As long as there are more heads than features that
costs nothing; the first removal that does is that of the D-th head. Before a removal that costs,
and after it, the network is trained on: the others may learn what the one that goes knew.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from torch import Tensor

from headwise.advise.probe.counting.surrogate import influential_tokens
from headwise.advise.probe.data.prepare import Prepared
from headwise.advise.probe.descent.removal import remove_head
from headwise.nets import AttentionShape, ClassTokenShape, MLPShape
from headwise.training import Training, learning_rates
from headwise.training.samples.choose import make_engine
from headwise.training.samples.data import epoch_order
from headwise.training.samples.engine import Dataset
from headwise.training.samples.stacked import member_loss

BATCH, RATE, TUNING_RATE = 32, 1e-2, 5e-3
EMBED_DIM, QK_DIM, WIDTH, READOUT_WIDTH = 24, 4, 32, 96
JUDGED_ON = 1024  # training sequences that choose the head to remove
FREE = 1.1  # a removal that raises the loss by less needs no training
SETTLED, SETTLED_FOR = 4.0, 2  # stop when this factor above the best error for so many removals
_SEGMENT = 500  # steps between two looks at the clock


class DescentOutOfTime(Exception):
    """The time the user gave is over."""


@dataclass(frozen=True)
class DescentPlan:
    """A descent as data: equal plans on equal data give equal results."""

    seed: int
    head_dim: int
    most_heads: int
    least_heads: int = 1
    wide_steps: int = 8000
    tuning_steps: int = 2000

    @property
    def steps(self) -> int:
        """Training steps of the whole descent, at most."""
        return self.wide_steps + 3 * self.tuning_steps * (self.most_heads - self.least_heads)


@dataclass(frozen=True)
class Descent:
    """What came of it: held-out errors (1 = the best constant answer) by number of heads.

    `removal_costs[h]` is the factor by which the loss grew when h heads were left, before any
    further training; `token_counts[h]` the tokens that then influence the network's answer.
    `train_errors` tells too little data from too much noise.
    """

    plan: DescentPlan
    errors: dict[int, float] = field(default_factory=dict)
    train_errors: dict[int, float] = field(default_factory=dict)
    removal_costs: dict[int, float] = field(default_factory=dict)
    token_counts: dict[int, float] = field(default_factory=dict)
    finished: bool = True

    @property
    def settled(self) -> bool:
        """The error has left its floor for good: fewer heads will not be better."""
        fewest = sorted(self.errors)[:SETTLED_FOR]
        floor = min(self.errors.values(), default=0.0)
        enough = len(self.errors) > SETTLED_FOR
        return enough and all(self.errors[heads] > SETTLED * floor for heads in fewest)


Report = Callable[
    [int], None
]  # called with the number of steps just taken; may raise DescentOutOfTime


def probe_shape(data: Prepared, heads: int, head_dim: int) -> ClassTokenShape:
    """Narrow heads, free embedding: with few dimensions a head cannot carry two features."""
    return ClassTokenShape(
        token_dim=data.train.inputs.shape[2],
        embed_dim=EMBED_DIM,
        layers=(AttentionShape(heads=heads, qk_dim=QK_DIM, v_dim=head_dim),),
        embed=MLPShape(widths=(WIDTH,), activation="relu"),
        readout=MLPShape(widths=(READOUT_WIDTH,), activation="gelu"),
        outputs=data.train.targets.shape[1],
    )


def descend(data: Prepared, plan: DescentPlan, report: Report) -> Descent:
    """Train wide, then remove heads one by one until the answer is clear or the time is over."""
    walk = _Walk(data, plan, report)
    try:
        walk.train(plan.wide_steps, RATE)
        while walk.heads > plan.least_heads and not walk.descent.settled:
            walk.remove()
    except DescentOutOfTime:
        return replace(walk.descent, finished=False)
    with suppress(
        DescentOutOfTime
    ):  # it is finished; what was planned and not needed counts as done
        report(plan.steps - walk.taken)
    return walk.descent


class _Walk:
    """The network on its way down: its weights now, and what was measured so far."""

    def __init__(self, data: Prepared, plan: DescentPlan, report: Report) -> None:
        self.data, self.plan, self.report = data, plan, report
        self.shape = probe_shape(data, plan.most_heads, plan.head_dim)
        self.params = self.shape.initial_params(plan.seed)
        self.judged = Dataset(data.train.inputs[:JUDGED_ON], data.train.targets[:JUDGED_ON])
        self.descent, self.taken, self.debt = Descent(plan), 0, 1.0

    @property
    def heads(self) -> int:
        return self.shape.layers[0].heads

    def train(self, steps: int, rate: float) -> None:
        """Train on, and note what came of it."""
        self.params, train_error = train_on(
            self.data, self.shape, self.params, self.plan.seed, self.taken, steps, rate, self.report
        )
        self.taken, self.debt = self.taken + steps, 1.0
        self.descent.train_errors[self.heads] = train_error
        self._measure()

    def remove(self) -> None:
        """Take one head away; train only if that, or what went before, has cost something."""
        removal = remove_head(self.shape, self.params, self.judged, self.data.loss)
        tuned = self.heads in self.descent.train_errors
        if removal.cost > FREE and not tuned:
            self.train(2 * self.plan.tuning_steps, TUNING_RATE)
            removal = remove_head(self.shape, self.params, self.judged, self.data.loss)
        self.shape, self.params = removal.shape, removal.params
        self.descent.removal_costs[self.heads] = removal.cost
        self.debt *= removal.cost
        if self.debt > FREE:
            self.train(self.plan.tuning_steps, TUNING_RATE)
        else:
            self._measure()

    def _measure(self) -> None:
        inputs = self.data.holdout.inputs
        self.descent.errors[self.heads] = held_out_error(self.data, self.shape, self.params)
        self.descent.token_counts[self.heads] = influential_tokens(self.shape, self.params, inputs)


def train_on(
    data: Prepared,
    shape: ClassTokenShape,
    params: dict[str, Tensor],
    seed: int,
    taken: int,
    steps: int,
    rate: float,
    report: Report,
) -> tuple[dict[str, Tensor], float]:
    """Train given weights for some steps; the new weights and their training error."""
    count = len(data.train.inputs)
    training = _training(data, steps, rate)
    engine, _ = make_engine(shape, training, [params], [seed])
    rates = learning_rates(training)
    losses = []
    for first in range(0, steps, _SEGMENT):
        last = min(first + _SEGMENT, steps)
        order = epoch_order(count, training.batch, seed, taken + first, taken + last)[None]
        losses.append(engine.advance(data.train, order, rates[first:last]))
        report(last - first)
    tail = np.concatenate(losses, 1)[0, -max(1, steps // 4) :].mean()
    return engine.params()[0], _finite(tail / data.ignorance)


def held_out_error(data: Prepared, shape: ClassTokenShape, params: dict[str, Tensor]) -> float:
    """Loss on the held-out part, in units of the best constant answer's."""
    engine, _ = make_engine(shape, _training(data, 1, RATE), [params], [0])
    outputs = engine.predict(data.holdout.inputs).double()
    loss = member_loss(outputs, data.holdout.targets.double()[None], data.loss)
    return _finite(float(loss[0]) / data.ignorance)


def _training(data: Prepared, steps: int, rate: float) -> Training:
    count = len(data.train.inputs)
    return Training(
        steps=steps,
        rate=rate,
        batch=min(BATCH, count),
        warmup=0.05,
        samples=count,
        loss=data.loss,
    )


def _finite(error: float) -> float:
    """A network that diverged knows nothing: its error is that of a constant."""
    return float(error) if np.isfinite(error) else 1.0
