"""How far an answer from training is to be trusted: a chance fitted to the zoo.

The errors by number of heads are read as a few numbers (`CurveReading`), and the chance that the
answer is right is a logistic function of them. The weights lean on tasks of development seeds of
the zoo (`headwise.advise.probe.zoo`); `benchmarks/probe/probe_calibration.py` collects readings
and fits the weights again. What they mean:

- a `step` of the error at the answer that is large, beside what more heads still buy (`rest`),
  is what too few heads look like; a threshold that more heads sharpen has a small step and a rest;
- what stays unexplained (`floor`) may need heads of its own, or another layer;
- descents of other seeds and wider heads that agree (`agreement`) make chance unlikely.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from headwise.advise.probe.verdict import FLOOR

LEAST_STEP = log(3)  # a smaller fall at the answer is not told from a slope
MOST_REST = 0.9  # one head is refused where more gain a larger factor, in logarithms
# Where more than this stays unexplained, a third of it; of labels, whose borders sharpen on and on,
# one head that chooses leaves up to 0.08 of the entropy and the best number of them 0.05.
SMALL_FLOOR, SMALL_FLOOR_OF_LABELS = 1e-2, 0.1
STANDS_OUT = 2.5  # the step is to be this many times what more heads still buy, in logarithms
# What one wide head leaves where it holds all that there is, in units of what is as good as none:
# the length of a mean token of four coordinates 7, the highest point of a walk 35 and more.
MUCH_LEFT = 15.0
LITTLE_LEFT, LITTLE_LEFT_OF_LABELS = 1e-3, 2e-2  # of a constant's: positions have nothing to add
ONE_IS_CLOSE = 4e-3  # what one head leaves of a soft maximum, of any temperature, at most
NOTHING_LEARNT = 0.9  # of the error of a constant
AS_GOOD = 1.3  # an error within this factor of another is as good
# Of a constant's: what may stay unexplained. A mean leaves 0.045 of the largest distance of two of
# twelve tokens, which no head computes.
LARGEST_FLOOR, LARGEST_FLOOR_OF_LABELS = 0.03, 0.4
# One head that leaves more than LITTLE_LEFT may be all that was learnt of order statistics, and
# many heads that learnt less than few of them show that training is a lottery: of either kind of
# answers on the zoo's development seeds, about one in seven was wrong. One head that leaves less
# than SMALL_FLOOR was right in all 78 on three later seeds, several with a steeper step than SHEER
# in 47 of 48.
UNEXPLAINED_CHANCE, ERRATIC_CHANCE, NEARLY_SURE = 0.88, 0.85, 0.96
SHEER = log(20)
# As far do many heads fall behind few where it is chance what is learnt: an answer is doubted from
# ERRATIC on. Of a kurtosis they fall behind sevenfold and more, of retrieval up to fivefold.
ERRATIC, LOTTERY = log(3), log(6)
LOTTERIES = 2  # descents of the second kind with which there is no answer


@dataclass(frozen=True)
class CurveReading:
    """Errors by number of heads, as seen from the answer; all logarithms are of raised errors."""

    heads: int
    step: float  # log of the factor by which the error falls from one head fewer; 0 for one head
    rest: float  # log of the factor that more heads still gain
    floor: float  # the smallest error, without the noise that is known
    agreement: float  # share of the descents that say the same
    solved: float = FLOOR  # an error that is as good as none
    erratic: int = 0  # descents in which more heads learnt less than fewer
    lotteries: int = 0  # descents in which they learnt far less

    @property
    def stands_out(self) -> bool:
        """The error falls at the answer, and hardly after."""
        if self.heads == 1:
            small = SMALL_FLOOR if self.solved == FLOOR else SMALL_FLOOR_OF_LABELS
            return self.rest < (MOST_REST if self.floor < small else MOST_REST / 3)
        return self.step > max(LEAST_STEP, STANDS_OUT * self.rest)

    @property
    def chance(self) -> float:
        """Probability that the answer is right."""
        weights = ONE_HEAD if self.heads == 1 else SEVERAL_HEADS
        score = sum(w * x for w, x in zip(weights, self.features, strict=True))
        most = MOST
        if self.heads == 1 and self.solved == FLOOR and self.floor > LITTLE_LEFT:
            most = NEARLY_SURE if self.floor < SMALL_FLOOR else UNEXPLAINED_CHANCE
        elif self.heads > 1 and self.erratic:
            most = NEARLY_SURE if self.step > SHEER else ERRATIC_CHANCE
        return min(most, 1 / (1 + exp(-score)))

    @property
    def packed(self) -> bool:
        """One wide head does what takes several narrow ones, and something is left unexplained.

        Its values then hold a summary of the sequence rather than a feature, as of a random walk
        whose highest point is asked for: what is left may need heads, or a layer, of its own.
        """
        return self.heads == 1 and self.agreement < 0.5 and self.floor > MUCH_LEFT * self.solved

    @property
    def features(self) -> Sequence[float]:
        """What the chance is a logistic function of."""
        return (1.0, min(self.step, 4.0), self.rest, log(self.floor + FLOOR), self.agreement)


MOST = 0.99
# constant, step, rest, log of the floor, agreement
ONE_HEAD = (1.0, 0.0, -4.0, -0.5, 0.0)
SEVERAL_HEADS = (-4.3, 1.6, -4.0, -0.4, 1.5)


def pooling_suffices(pooled: float, best: float, floor: float) -> bool:
    """A mean over the tokens is as good as any number of heads; below `floor` all are."""
    return pooled + floor <= AS_GOOD * (best + floor)
