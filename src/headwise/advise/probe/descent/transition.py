"""The transition in training: what the descents of several seeds say together."""

from dataclasses import dataclass, replace
from math import inf, log

from headwise.advise.probe.calibration import (
    AS_GOOD,
    ERRATIC,
    LARGEST_FLOOR,
    LOTTERY,
    MOST_REST,
    MUCH_LEFT,
    ONE_IS_CLOSE,
    SMALL_FLOOR,
    CurveReading,
    pooling_suffices,
)
from headwise.advise.probe.descent.walk import Descent
from headwise.advise.probe.verdict import FLOOR, FLOOR_OF_LABELS, HeadVerdict, judge

CLEAR = 0.97
NEARLY, ALMOST = 3.0, 2.0  # factors
ROUNDING = 3e-6  # of a constant's error: what training in single precision may leave
TOO_LITTLE, TOO_LITTLE_OF_LABELS = 0.5, 0.9  # twice the steps do not turn this into an answer
STEEP = log(8)  # no slope has such a step
FEWEST_TO_BEGIN = 6  # heads of later descents; else twice what seems to be needed, and two
# Rank correlations of two heads' scores: of an extremum and an average 0, of two maxima with
# weights 1 and 0.02 or 0.03 0.3 to 0.6, of a power or softmax-weighted mean 0.87 to 0.99.
UNLIKE, ALIKE = 0.3, 0.8
BROAD = 0.3  # share of the tokens that a head attends to where it averages
NARROW = 2  # value dimensions of narrow heads
NO_STEP = log(2)  # where every further head gains less, longer training finds no step either


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
    def close(self) -> int | None:
        """So few heads leave little, and more leave less: they may only have learnt more slowly.

        One head, or the first number at which the error falls steeply.
        """
        if self.labels or not self.in_time or self.average_suffices or self.averages_merge:
            return None
        errors = {h: self.reached(h) or 0.0 for h in self.errors()}
        verdict = self.verdict
        for heads, error in sorted(errors.items()):
            raised = error + self.solved
            step = log((errors.get(heads - 1, 1.0) + self.solved) / raised)
            if error < SMALL_FLOOR and (heads == 1 or step > STEEP):
                sure = verdict.heads == heads > 1 and verdict.confidence > CLEAR
                return None if sure and self.reading(heads).stands_out else heads
        return None

    @property
    def in_haste(self) -> "Transition":
        """The same without the heads that were trained on for long."""
        usual = tuple(d for d in self.descents if d.plan.most_heads > d.plan.least_heads)
        return replace(self, descents=usual)

    @property
    def two_features(self) -> bool:
        """Two heads stand out, each with a feature of its own, in all networks that learnt so much.

        One head, trained for long, may do with soft scores what it takes two for: an extremum and
        an average, to some precision. That is no feature less.
        """
        usual = self.in_haste
        verdict, reading = usual.verdict, usual.reading(2) if 2 in usual.errors() else None
        if verdict.heads != 2 or verdict.confidence < CLEAR or reading is None:
            return False
        return reading.stands_out and max(usual.likenesses, default=1.0) < UNLIKE

    @property
    def by_features(self) -> bool:
        """Two heads are the answer by what they choose, though one has come close in the end."""
        return self.two_features and not self._comes_within(ALMOST)

    @property
    def contested(self) -> bool:
        """Two heads are the answer by what they choose, and one is not far behind."""
        return self.by_features and self.catches_up

    @property
    def one_feature(self) -> bool:
        """Two heads choose alike in all networks that learnt: the second refines what one does."""
        return min(self.in_haste.likenesses, default=0.0) > ALIKE

    @property
    def likenesses(self) -> list[float]:
        """How alike two heads choose, in the networks of two that learnt about all there is."""
        return [d.likeness[2] for d in self._learnt_by_two if 2 in d.likeness]

    @property
    def averages_merge(self) -> bool:
        """Two heads are as good as any number, and both are averages: one head can be both.

        Σ_t e^{s(x_t)} v(x_t) / Σ_t e^{s(x_t)} is the quotient of two averages, moderate ones where
        many tokens are attended to. So one head with constant scores and the values e^s v and e^s
        of both, six dimensions for narrow heads, gives what the two give.
        """
        if self.labels or self.best > MUCH_LEFT * self.solved:
            return False
        most = AS_GOOD * (self.best + self.solved)
        return any(
            d.breadth.get(2, 0.0) > BROAD and d.errors[2] + self.solved <= most
            for d in self.in_haste._learnt_by_two
            if d.plan.head_dim == NARROW
        )

    @property
    def _learnt_by_two(self) -> list[Descent]:
        most = NEARLY * (self.best + ROUNDING)
        return [d for d in self.descents if d.errors.get(2, 1.0) < most]

    @property
    def catches_up(self) -> bool:
        """One head, trained for long, has become as good as several, or nearly."""
        return self._comes_within(NEARLY)

    def _comes_within(self, factor: float) -> bool:
        little, reached = self.solved / 10, self.reached(1)
        patient = len(self.in_haste.descents) < len(self.descents)
        if self.labels or reached is None or not patient:
            return True
        several = (error for heads, error in self.errors().items() if heads > 1)
        return reached + little < factor * (min(several, default=0.0) + little)

    @property
    def beyond_seeds(self) -> bool:
        """More narrow seeds would change nothing: one head is the answer, or so close that more are
        doubtful, or the error falls gently at every head.
        """
        errors = {h: e + self.solved for h, e in self.errors().items()}
        falls = [log(errors[h - 1] / e) for h, e in errors.items() if h - 1 in errors]
        if self.verdict.heads == 1 and self.reading(1).stands_out:
            return True
        sloping = len(falls) > 2 and max(falls) < NO_STEP and sum(falls) > MOST_REST
        return sloping or (not self.labels and errors.get(1, 1.0) < ONE_IS_CLOSE)

    @property
    def spare_heads(self) -> int:
        """Heads to begin a later descent with: clearly more than the ones before needed."""
        enough = max(FEWEST_TO_BEGIN, 2 * self.verdict.heads + 2)
        return min(self.most_heads, enough if self.best < LARGEST_FLOOR else self.most_heads)

    @property
    def clear(self) -> bool:
        """More seeds would not change the answer."""
        return self.average_suffices or self.averages_merge or self.verdict.confidence > CLEAR

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
        return judge(self.attained, self.most_heads, self.solved)

    @property
    def attained(self) -> dict[int, float]:
        """The errors by number of heads, where more can do what fewer have learnt."""
        least, found = inf, {}
        for heads in sorted(self.errors()):
            least = min(least, self.reached(heads) or 0.0)
            found[heads] = least
        return found

    def erratic(self, least: float) -> int:
        """Descents in which many heads fell behind few, by a factor of which this is the log."""
        return sum(each.erratic(self.solved) > least for each in self.descents)

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
        errors = {h: error + self.solved for h, error in self.attained.items()}
        more = min(error for h, error in errors.items() if h >= heads)
        fewer = errors.get(heads - 1)
        own = [
            judge(d.errors, d.plan.most_heads, self.solved).heads
            for d in self.in_haste.descents
            if d.errors
        ]
        return CurveReading(
            heads=heads,
            step=0.0 if fewer is None else log(fewer / errors[heads]),
            rest=log(errors[heads] / more),
            floor=max(self.best - noise, 0.0),
            agreement=sum(each == heads for each in own) / max(len(own), 1),
            solved=self.solved,
            erratic=self.erratic(ERRATIC),
            lotteries=self.erratic(LOTTERY),
        )
