"""The transition in training: descents of several seeds until the answer is clear."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import log

from headwise.advise.probe.calibration import SMALL_FLOOR, CurveReading, pooling_suffices
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import BATCH
from headwise.advise.probe.descent.pooled import forms_error, pooled_error
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.walk import Descent, DescentPlan, descend
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import FLOOR, FLOOR_OF_LABELS, HeadVerdict, judge
from headwise.core.workers import worker_count

HEAD_DIM, WIDE_HEAD_DIM = 2, 8  # theorem 2 needs two dimensions a head; eight is the paper's choice
WIDE_STEPS, TUNING_STEPS = 8000, 2000
_FULL_STEPS = 8000  # wide steps at which the controls without attention take all of their own
MOST_EPOCHS = 50  # few samples seen more often are overfitted
CLEAR = 0.97
NEARLY = 3.0  # a factor
ROUNDING = 1e-6  # of a constant's error: what single precision leaves
NOT_BETTER = 1.5  # times the error that is asked for: other seeds will not reach it either
TOO_LITTLE, TOO_LITTLE_OF_LABELS = 0.5, 0.9  # twice the steps do not turn this into an answer
FIRST_SEED, SECOND_SEED, WIDE_SEED, PATIENT_SEED = 0, 1, 2, 6
MORE_SEEDS: tuple[tuple[int, ...], ...] = ((3, 4), (5,))
STEEP = log(8)  # no slope has such a step
PATIENCE = (2, 4, 8)  # times the steps, for one head that is close
FEWEST_TO_BEGIN = 6  # heads of longer descents; else twice what seems to be needed, and two
CATCHES_UP = 0.7  # the factor by which its error must fall for another round


@dataclass(frozen=True)
class Transition:
    """All descents, and what they say together."""

    descents: tuple[Descent, ...]
    most_heads: int
    pooled: float | None = None  # error of a network without attention
    labels: bool = False
    forms: float | None = None  # error of a network that sees a few linear forms of the sequence

    @property
    def solved(self) -> float:
        """Errors below this are as good as none."""
        return FLOOR_OF_LABELS if self.labels else FLOOR

    @property
    def in_time(self) -> bool:
        """Every descent was finished."""
        return all(descent.finished for descent in self.descents)

    @property
    def uncontrolled(self) -> bool:
        """Heads may be credited with what a mean over the tokens does: that was not tried."""
        return self.pooled is None and not self.one_is_enough and not self.forms_suffice

    @property
    def hopeful(self) -> bool:
        """So much was learnt that longer training may do the rest, and there is time left."""
        return self.in_time and self.best < (TOO_LITTLE_OF_LABELS if self.labels else TOO_LITTLE)

    @property
    def one_is_enough(self) -> bool:
        """One head does it, and clearly: a control without attention would say nothing else."""
        verdict = self.verdict
        sure = self.in_time and verdict.heads == 1 and verdict.confidence > CLEAR
        if not sure or self.best > SMALL_FLOOR:
            return False
        reading = self.reading(1)
        return reading.stands_out and not reading.packed

    @property
    def one_is_close(self) -> bool:
        """One head leaves little, and more leave less: it may only have learnt more slowly."""
        reached = self.reached(1)
        close = reached is not None and reached < SMALL_FLOOR and not self.labels
        return close and self.in_time and not self.average_suffices

    @property
    def clear(self) -> bool:
        """More seeds would not change the answer."""
        return self.average_suffices or self.verdict.confidence > CLEAR

    @property
    def agreed(self) -> bool:
        """Narrow and wide heads say the same, each by a step that nobody would take for a slope."""
        verdict, reading = self.verdict, self.reading(self.verdict.heads)
        stands = reading.stands_out and (verdict.heads == 1 or reading.step > STEEP)
        sure = verdict.confidence > CLEAR and reading.agreement == 1.0
        return self.in_time and sure and stands and self.best < SMALL_FLOOR

    def train_error(self, heads: int) -> float:
        """The smallest error on training data with so many heads, or else with more or fewer."""
        exact = [d.train_errors[heads] for d in self.descents if heads in d.train_errors]
        return min(exact or [e for d in self.descents for e in d.train_errors.values()])

    def errors(self, head_dim: int | None = None) -> dict[int, float]:
        """Smallest held-out error by heads: over seeds, and over head sizes unless one is named."""
        chosen = [d for d in self.descents if head_dim in (None, d.plan.head_dim)]
        heads = sorted({heads for descent in chosen for heads in descent.errors})
        return {h: min(d.errors[h] for d in chosen if h in d.errors) for h in heads}

    @property
    def verdict(self) -> HeadVerdict:
        """What the errors say of the number of heads."""
        return judge(self.errors(), self.most_heads, self.solved)

    @property
    def best(self) -> float:
        """The smallest error of all, with attention or without."""
        controls = [error for error in (self.pooled, self.forms) if error is not None]
        return min([*self.errors().values(), *controls], default=1.0)

    @property
    def pooling_suffices(self) -> bool:
        """A mean over the tokens is as good as any number of heads."""
        return self.pooled is not None and pooling_suffices(self.pooled, self.best, self.solved)

    @property
    def forms_suffice(self) -> bool:
        """A few linear forms of the sequence are as good as any number of heads."""
        found = self.forms is not None and self.forms < 1
        return found and pooling_suffices(self.forms or 0.0, self.best, self.solved)

    @property
    def average_suffices(self) -> bool:
        """One head that averages is as good as any number of heads."""
        return self.pooling_suffices or self.forms_suffice

    def learnt_with(self, heads: int) -> bool:
        """So many heads reach the best error or nearly; else how wide they are says nothing."""
        error = self.errors().get(heads)
        return error is not None and error + self.solved < NEARLY * (self.best + self.solved)

    def fixed_readers(self, heads: int) -> int:
        """Heads, of so many, that look at one position only, in the networks that learnt most."""
        good = [d for d in self.descents if d.errors.get(heads, 1.0) < NEARLY * self.best]
        return max((round(d.fixed_readers.get(heads, 0)) for d in good), default=0)

    def hidden_gain(self, heads: int) -> float:
        """The factor by which more heads lower the error, however small that is already."""
        reached = self.reached(heads)
        more = [error for h, error in self.errors().items() if h > heads]
        return reached / max(min(more), ROUNDING) if reached is not None and more else 1.0

    def precision(self, heads: int) -> float:
        """The error, of a constant's, that so many heads are seen to reach: what is less is not
        told from none. It bounds the heads that this error takes; a part of the target that is
        smaller still may need heads of its own.
        """
        reached = self.reached(heads)
        return max(self.solved, self.best if reached is None else reached)

    def reached(self, heads: int) -> float | None:
        """The smallest error with so many heads; one of them can be a mean, too."""
        errors = self.errors()
        found = [errors[heads]] if heads in errors else []
        if heads == 1:
            found += [error for error in (self.pooled, self.forms) if error is not None]
        return min(found, default=None)

    def reading(self, heads: int, noise: float = 0.0) -> CurveReading:
        """The errors as seen from an answer; `noise` is the known share of the error."""
        errors = {h: (self.reached(h) or 0.0) + self.solved for h in self.errors()}
        more = min(error for h, error in errors.items() if h >= heads)
        fewer = errors.get(heads - 1)
        own = [
            judge(d.errors, d.plan.most_heads, self.solved).heads
            for d in self.descents
            if len(d.errors) > 1
        ]
        return CurveReading(
            heads=heads,
            step=0.0 if fewer is None else log(fewer / errors[heads]),
            rest=log(errors[heads] / more),
            floor=max(self.best - noise, 0.0),
            agreement=sum(each == heads for each in own) / max(len(own), 1),
            solved=self.solved,
        )


def find_transition(
    data: Prepared,
    most_heads: int,
    seed: int,
    clock: Clock,
    state: DescentFile,
    jobs: int | None = None,
    most_error: float = 1.0,
) -> Transition:
    """Narrow heads and wide ones, and narrow ones of a second seed unless both agree; controls
    without attention, unless one head is seen to be enough; longer seeds while it is unclear.

    Where one head is close, two wide ones are trained for longer, and then one, and again while
    that helps: what it has only learnt more slowly it catches up on, what it cannot hold stays.

    Where more than `most_error` is left after the first, others are not worth it.
    """
    rest = (clock, state, jobs)
    share = min(1.0, MOST_EPOCHS * len(data.train.inputs) / (BATCH * WIDE_STEPS))

    def plan(number: int, head_dim: int, longer: int = 1) -> DescentPlan:
        return DescentPlan(
            seed=1000 * seed + number,
            head_dim=head_dim,
            most_heads=most_heads,
            wide_steps=round(share * longer * WIDE_STEPS),
            tuning_steps=round(share * longer * TUNING_STEPS),
        )

    labels = data.loss != "mse"
    first, wide = plan(FIRST_SEED, HEAD_DIM), plan(WIDE_SEED, WIDE_HEAD_DIM)
    if most_error < 1:
        found = run(data, [first], *rest)
        alone = Transition(tuple(found), most_heads, None, labels)
        found += run(data, [wide] * (alone.best < NOT_BETTER * most_error), *rest)
    else:
        found = run(data, [first, wide], *rest)
    transition = Transition(tuple(found), most_heads, None, labels)
    if transition.errors() and transition.hopeful and not transition.agreed:
        found += run(data, [plan(SECOND_SEED, HEAD_DIM)], *rest)
        transition = Transition(tuple(found), most_heads, None, labels)
    if not transition.errors() or transition.one_is_enough:
        return transition
    steps = share * WIDE_STEPS / _FULL_STEPS
    transition = _controlled(transition, data, seed, clock, state, steps)
    for longer in PATIENCE:
        before = transition.reached(1)
        if before is None or not transition.one_is_close:
            break
        patient = plan(PATIENT_SEED, WIDE_HEAD_DIM, longer)
        patient = replace(
            patient, most_heads=min(2, most_heads), tuning_steps=patient.wide_steps // 2
        )
        found += run(data, [patient], *rest)
        transition = replace(transition, descents=tuple(found))
        if transition.one_is_enough or (transition.reached(1) or 0.0) > CATCHES_UP * before:
            break
    for numbers in MORE_SEEDS:
        if transition.clear or not transition.hopeful or transition.best > most_error:
            break
        spare = min(most_heads, max(FEWEST_TO_BEGIN, 2 * transition.verdict.heads + 2))
        plans = [plan(number, HEAD_DIM, longer=2) for number in numbers]
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
