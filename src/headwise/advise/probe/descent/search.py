"""How the transition is looked for: what is trained, in which order, and when to stop."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import BATCH
from headwise.advise.probe.descent.patience import persevere
from headwise.advise.probe.descent.pooled import forms_error, pooled_error
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.transition import (
    NARROW,
    TOO_LITTLE,
    TOO_LITTLE_OF_LABELS,
    Transition,
)
from headwise.advise.probe.descent.walk import Descent, DescentPlan, descend
from headwise.advise.probe.samples.prepare import Prepared
from headwise.core.workers import worker_count

HEAD_DIM, WIDE_HEAD_DIM = (
    NARROW,
    8,
)  # theorem 2 needs two dimensions a head; eight is the paper's choice
WIDE_STEPS, TUNING_STEPS = 8000, 2000
_FULL_STEPS = 8000  # wide steps at which the controls without attention take all of their own
# Scores that depend on the position are learnt more slowly: of maxima by thirds of a sequence
# networks left 0.02 to 0.3 after 8000 steps, and 1e-4 to 2e-3 after twice as many.
ORDERED_TAKES = 2
MOST_EPOCHS = 50  # few samples seen more often are overfitted
NOT_BETTER = 1.5  # times the error that is asked for: other seeds will not reach it either
FIRST_SEED, SECOND_SEED, WIDE_SEED, PATIENT_SEED = 0, 1, 2, 6
MORE_SEEDS: tuple[tuple[int, ...], ...] = ((3, 4), (5,))


def find_transition(
    data: Prepared,
    most_heads: int,
    seed: int,
    clock: Clock,
    state: DescentFile,
    jobs: int | None = None,
    most_error: float = 1.0,
) -> Transition:
    """Narrow heads and then wide ones, and narrow ones of a second seed unless both agree; controls
    without attention, unless one head is seen to be enough; longer seeds while it is unclear.

    Where few heads are close, they are trained on, and again while that helps: what they have only
    learnt more slowly they catch up on, what they cannot hold stays.

    Where more than `most_error` is left after the first, others are not worth it.
    """
    rest = (clock, state, jobs)
    takes = ORDERED_TAKES if data.ordered_dims else 1
    share = min(1.0, MOST_EPOCHS * len(data.train.inputs) / (BATCH * WIDE_STEPS))
    labels = data.loss != "mse"

    def plan(number: int, head_dim: int, longer: int = 1) -> DescentPlan:
        return DescentPlan(
            seed=1000 * seed + number,
            head_dim=head_dim,
            most_heads=most_heads,
            wide_steps=round(share * takes * longer * WIDE_STEPS),
            tuning_steps=round(share * takes * longer * TUNING_STEPS),
            give_up=TOO_LITTLE_OF_LABELS if labels else TOO_LITTLE,
        )

    found = run(data, [plan(FIRST_SEED, HEAD_DIM)], *rest)
    transition = Transition(tuple(found), most_heads, None, labels)
    if transition.errors() and transition.best < NOT_BETTER * most_error:
        wide = replace(plan(WIDE_SEED, WIDE_HEAD_DIM), most_heads=transition.spare_heads)
        found += run(data, [wide], *rest)
        transition = Transition(tuple(found), most_heads, None, labels)
    if transition.errors() and transition.hopeful and not transition.agreed:
        found += run(data, [plan(SECOND_SEED, HEAD_DIM)], *rest)
        transition = Transition(tuple(found), most_heads, None, labels)
    if not transition.errors() or transition.one_is_enough:
        return transition
    steps = share * WIDE_STEPS / _FULL_STEPS
    transition = _controlled(transition, data, seed, clock, state, steps)
    close = transition.close
    if close is not None:
        patient = replace(plan(PATIENT_SEED, WIDE_HEAD_DIM), most_heads=close, least_heads=close)
        found += persevere(data, found, patient, transition.best, transition.solved, clock, state)
        transition = replace(transition, descents=tuple(found))
    if close == 1 and transition.two_features and transition.catches_up:
        both = replace(patient, most_heads=2, least_heads=2)  # as patient with two as with one
        found += persevere(data, found, both, 0.0, 0.0, clock, state)
        transition = replace(transition, descents=tuple(found))
    for numbers in MORE_SEEDS:
        settled = transition.clear or transition.beyond_seeds
        if settled or not transition.hopeful or transition.best > most_error:
            break
        plans = [plan(number, HEAD_DIM, longer=2) for number in numbers]
        spare = transition.spare_heads
        found += run(data, [replace(each, most_heads=spare) for each in plans], *rest)
        transition = replace(transition, descents=tuple(found))
    return transition


def _controlled(
    transition: Transition,
    data: Prepared,
    seed: int,
    clock: Clock,
    state: DescentFile,
    share: float,
) -> Transition:
    """The transition beside what one head that averages can do: linear forms, then a mean."""
    forms = state.forms(seed)
    if forms is None:
        forms = forms_error(data, seed, clock, share)
        state.put_forms(seed, forms)
    transition = replace(transition, forms=forms)
    if transition.forms_suffice:
        return transition
    pooled = state.pooled(seed)
    if pooled is None:
        pooled = pooled_error(data, seed, clock, transition.best, share)
        state.put_pooled(seed, pooled)
    return replace(transition, pooled=pooled)


def run(
    data: Prepared, plans: Sequence[DescentPlan], clock: Clock, state: DescentFile, jobs: int | None
) -> list[Descent]:
    """The descents, from the state where it has them, else trained, a thread each."""
    known = {plan: state.get(plan) for plan in plans}
    todo = [plan for plan in plans if known[plan] is None]
    clock.planned += sum(plan.steps for plan in todo)
    with ThreadPoolExecutor(worker_count(jobs)) as pool:
        futures = [pool.submit(descend, data, plan, clock) for plan in todo]
        try:
            for plan, future in zip(todo, futures, strict=True):
                known[plan] = descent = future.result()
                state.put(descent)
        except BaseException:
            clock.stopped = True
            raise
    return [descent for descent in known.values() if descent is not None]
