"""Few heads that are close: trained on, and from sharper scores.

A head learns to choose a token by letting its scores grow, and the closer it comes the smaller is
the slope that makes them grow: the error falls like a power of the steps, far more slowly than that
of more heads, which hedge between tokens that nearly tie. So the scores are multiplied, the
network is trained a little, and what has the smallest error on the training data is trained on. A
task that so few heads can do then comes within reach; what they cannot hold stays where it was.
"""

from collections.abc import Sequence
from dataclasses import replace

from headwise.advise.probe.calibration import AS_GOOD
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import Params, held_out_error, train_on
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.walk import TUNING_RATE, Descent, DescentPlan, descend
from headwise.advise.probe.samples.prepare import Prepared

SHARPER = (1.0, 2.0, 4.0)
ROUNDS = (1, 3)  # times the steps of the plan
CATCHES_UP = 0.7  # the factor by which the error must fall for another round
_SCORES = "layers.0.query"


def persevere(
    data: Prepared,
    descents: Sequence[Descent],
    plan: DescentPlan,
    best: float,
    solved: float,
    clock: Clock,
    state: DescentFile,
) -> list[Descent]:
    """The best network of so many heads as the plan has, trained on until it is as good as `best`.

    Or until that gains little; errors below `solved` are as good as none. It is noted as a descent
    of that length; none where there is no such network or the time is over.
    """
    heads = plan.most_heads
    known = state.get(plan)
    if known is not None:
        return [known]
    some = [d for d in descents if heads in d.errors]  # wide heads can hold more: favour them
    nearest = min(some, key=lambda d: d.errors[heads] / d.plan.head_dim, default=None)
    if nearest is None:
        return []
    if not nearest.networks:  # the state keeps errors, not networks: the same plan gives the same
        nearest = descend(data, nearest.plan, clock)
    if heads not in nearest.networks:
        return []
    found = Descent(plan, {heads: nearest.errors[heads]}, networks={heads: nearest.networks[heads]})
    for times in ROUNDS:
        before = found.errors[heads]
        longer = replace(
            plan, wide_steps=times * plan.wide_steps, tuning_steps=times * plan.tuning_steps
        )
        if not _train_on(data, found, longer, clock):
            return []
        error = found.errors[heads]
        if error + solved <= AS_GOOD * (best + solved) or error > CATCHES_UP * before:
            break
    state.put(found)
    return [found]


def _train_on(data: Prepared, found: Descent, plan: DescentPlan, clock: Clock) -> bool:
    """One round; False if the time was over before."""
    heads = plan.most_heads
    shape, start = found.networks[heads]
    clock.planned += plan.wide_steps + len(SHARPER) * plan.tuning_steps
    tried: list[tuple[float, Params]] = []
    for factor in SHARPER:
        sharper = _sharpened(start, factor)
        short = (plan.seed, 0, plan.tuning_steps, TUNING_RATE, clock)
        trained = train_on(data, shape, sharper, *short)
        if trained is None:
            return False
        tried.append((trained[1], trained[0]))
    _, chosen = min(tried, key=lambda each: each[0])
    trained = train_on(data, shape, chosen, plan.seed, 0, plan.wide_steps, TUNING_RATE, clock)
    if trained is None:
        return False
    params, train_error = trained
    error = held_out_error(data, shape, params)
    if error < found.errors[heads]:
        found.networks[heads] = (shape, params)
        found.errors[heads], found.train_errors[heads] = error, train_error
    return True


def _sharpened(params: Params, factor: float) -> Params:
    """The same network with larger scores."""
    return {
        name: (value * factor if name.startswith(_SCORES) else value.clone()).contiguous()
        for name, value in params.items()
    }
