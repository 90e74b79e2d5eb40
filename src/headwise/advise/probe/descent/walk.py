"""From many heads to one: error against the number of heads, along one trained network.

Networks with barely enough heads often get stuck: trained from scratch they look as if a head
were missing. A network with many heads finds every feature; then heads are taken away one by one,
each time the one missed least (`removal.py`). As long as there are more heads than features that
costs nothing; the first removal that does is that of the D-th head. Before a removal that costs,
and after it, the network is trained on: the others may learn what the one that goes knew.
"""

from dataclasses import dataclass, field, replace
from math import log

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.counting.surrogate import (
    fixed_readers,
    influential_tokens,
    read_positions,
    two_choices,
)
from headwise.advise.probe.descent.network import (
    RATE,
    Params,
    held_out_error,
    probe_shape,
    train_on,
)
from headwise.advise.probe.descent.removal import remove_head
from headwise.advise.probe.samples.prepare import Prepared
from headwise.nets import ClassTokenShape
from headwise.training.samples.engine import Dataset

TUNING_RATE = 5e-3
READ_BY = 6  # heads of the largest networks that are asked which positions they read
JUDGED_ON = 1024  # training sequences that choose the head to remove
FREE = 1.1  # a removal that raises the loss by less needs no training
SETTLED, SETTLED_FOR = 4.0, 2  # stop when this factor above the best error for so many removals


@dataclass(frozen=True)
class DescentPlan:
    """A descent as data: equal plans on equal data give equal results."""

    seed: int
    head_dim: int
    most_heads: int
    least_heads: int = 1
    wide_steps: int = 8000
    tuning_steps: int = 2000
    give_up: float = 1.0  # an error of all heads from which taking some away shows nothing

    @property
    def steps(self) -> int:
        """Training steps of the whole descent, at most."""
        return self.wide_steps + 3 * self.tuning_steps * (self.most_heads - self.least_heads)


@dataclass(frozen=True)
class Descent:
    """What came of it: held-out errors (1 = the best constant answer) by number of heads.

    `removal_costs[h]` is the factor by which the loss grew when h heads were left, before any
    further training; `token_counts[h]` the tokens that then influence the network's answer, and
    `fixed_readers[h]` the heads that look at one position in all sequences, or the positions that
    are read for themselves where those are more. `likeness[2]` is how alike two heads choose,
    and `breadth[2]` the share of the tokens that they attend to, at least.
    `train_errors` tells too little data from too much noise. Not `finished`: the time was over,
    and this is what was measured until then. `networks` are the trained ones.
    """

    plan: DescentPlan
    errors: dict[int, float] = field(default_factory=dict)
    train_errors: dict[int, float] = field(default_factory=dict)
    removal_costs: dict[int, float] = field(default_factory=dict)
    token_counts: dict[int, float] = field(default_factory=dict)
    fixed_readers: dict[int, float] = field(default_factory=dict)
    likeness: dict[int, float] = field(default_factory=dict)
    breadth: dict[int, float] = field(default_factory=dict)
    finished: bool = True
    networks: dict[int, tuple[ClassTokenShape, Params]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def erratic(self, solved: float) -> float:
        """The log of the largest factor by which the error fell as heads were taken away."""
        raised = {heads: error + solved for heads, error in self.errors.items()}
        falls = [log(raised[h] / raised[fewer]) for h in raised for fewer in raised if fewer < h]
        return max(falls, default=0.0)

    @property
    def settled(self) -> bool:
        """The error has left its floor for good: fewer heads will not be better."""
        fewest = sorted(self.errors)[:SETTLED_FOR]
        floor = min(self.errors.values(), default=0.0)
        enough = len(self.errors) > SETTLED_FOR
        return enough and all(self.errors[heads] > SETTLED * floor for heads in fewest)


def descend(data: Prepared, plan: DescentPlan, clock: Clock) -> Descent:
    """Train wide, then remove heads one by one until the answer is clear or the time is over."""
    walk = _Walk(data, plan, clock)
    in_time = walk.train(plan.wide_steps, RATE)
    hopeless = in_time and walk.descent.errors[walk.heads] > plan.give_up
    while in_time and not hopeless and walk.heads > plan.least_heads and not walk.descent.settled:
        in_time = walk.remove()
    if in_time:
        clock.took(plan.steps - walk.taken)  # what was planned and not needed counts as done
    return replace(walk.descent, finished=in_time)


class _Walk:
    """The network on its way down: its weights now, and what was measured so far."""

    def __init__(self, data: Prepared, plan: DescentPlan, clock: Clock) -> None:
        self.data, self.plan, self.clock = data, plan, clock
        self.shape = probe_shape(data, plan.most_heads, plan.head_dim)
        self.params = self.shape.initial_params(plan.seed)
        self.judged = Dataset(data.train.inputs[:JUDGED_ON], data.train.targets[:JUDGED_ON])
        self.descent, self.taken, self.debt = Descent(plan), 0, 1.0

    @property
    def heads(self) -> int:
        return self.shape.layers[0].heads

    def train(self, steps: int, rate: float) -> bool:
        """Train on, and note what came of it; False if the time was over before."""
        trained = train_on(
            self.data, self.shape, self.params, self.plan.seed, self.taken, steps, rate, self.clock
        )
        if trained is None:
            return False
        self.params, self.descent.train_errors[self.heads] = trained
        self.taken, self.debt = self.taken + steps, 1.0
        self._measure()
        return True

    def remove(self) -> bool:
        """Take one head away; train only if that, or what went before, has cost something."""
        removal = remove_head(self.shape, self.params, self.judged, self.data.loss)
        tuned = self.heads in self.descent.train_errors
        if removal.cost > FREE and not tuned:
            if not self.train(2 * self.plan.tuning_steps, TUNING_RATE):
                return False
            removal = remove_head(self.shape, self.params, self.judged, self.data.loss)
        self.shape, self.params = removal.shape, removal.params
        self.descent.removal_costs[self.heads] = removal.cost
        self.debt *= removal.cost
        if self.debt > FREE:
            return self.train(self.plan.tuning_steps, TUNING_RATE)
        self._measure()
        return True

    def _measure(self) -> None:
        inputs = self.data.holdout.inputs
        self.descent.networks[self.heads] = (self.shape, self.params)
        self.descent.errors[self.heads] = held_out_error(self.data, self.shape, self.params)
        self.descent.token_counts[self.heads] = influential_tokens(self.shape, self.params, inputs)
        readers = fixed_readers(self.shape, self.params, inputs)
        if 1 < self.heads <= READ_BY:
            readers = max(readers, read_positions(self.shape, self.params, inputs))
        self.descent.fixed_readers[self.heads] = readers
        if self.heads == 2:
            both = two_choices(self.shape, self.params, inputs)
            self.descent.likeness[2], self.descent.breadth[2] = both
