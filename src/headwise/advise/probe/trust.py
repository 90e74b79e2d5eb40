"""Does training support an answer? A verdict that says how far it is to be trusted, or why not."""

from headwise.advise.probe.calibration import SMALL_FLOOR, UNEXPLAINED_CHANCE, CurveReading
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.transition import STEEP, Transition
from headwise.advise.probe.obstacles import (
    Obstacle,
    beaten,
    hidden_feature,
    lottery,
    nearly_alone,
    read_along,
    shown_errors,
    slope,
    softened,
    summary,
    unclear,
    unlearnt,
)
from headwise.advise.probe.verdict import HeadVerdict

TOO_DOUBTFUL = 0.6  # an answer that is less likely is none
OUT_OF_TIME = 0.8  # the chance of an answer, at most, where seeds are missing


def judge_training(
    transition: Transition, clock: Clock, noise: float = 0.0
) -> tuple[HeadVerdict | None, Obstacle | None]:
    """The verdict of training, or what stands in its way. `noise` is the known share of the error.

    A network without attention that is as good as any proves that one head is enough, whether it
    sees a mean over the tokens or a few linear forms of the sequence. Otherwise
    only a step that stands out is credited to heads.
    """
    obstacle = unlearnt(transition, clock, noise)
    if obstacle is not None:
        return None, obstacle
    if transition.forms_suffice:
        obstacle = hidden_feature(transition, 1)
        if obstacle is not None:
            return None, obstacle
        verdict = HeadVerdict({1: 1.0}).doubted(_one(transition).chance, transition.most_heads)
        return _likely(verdict, transition)
    if transition.pooling_suffices:
        reading = transition.reading(1, noise) if 1 in transition.errors() else _one(transition)
        obstacle = beaten(transition, noise) or hidden_feature(transition, 1) or summary(reading)
        if obstacle is not None:
            return None, obstacle
        verdict = HeadVerdict({1: 1.0}).doubted(reading.chance, transition.most_heads)
        return _likely(verdict, transition)
    if transition.averages_merge and transition.verdict.heads <= 2:
        verdict = HeadVerdict({1: 1.0}).doubted(_one(transition).chance, transition.most_heads)
        return _likely(verdict, transition)
    contested = transition.contested
    if transition.by_features:
        transition = transition.in_haste
    verdict = _sharpest(transition)
    heads = verdict.heads
    obstacle = unclear(transition, heads)
    if obstacle is not None:
        return None, obstacle
    reading = transition.reading(heads, noise)
    obstacle = (
        slope(transition, reading)
        or summary(reading)
        or lottery(reading)
        or hidden_feature(transition, heads)
        or read_along(transition, heads)
        or softened(transition, heads)
    )
    if obstacle is not None:
        return None, obstacle
    whole = transition.in_time and not transition.uncontrolled
    chance = reading.chance if whole else min(reading.chance, OUT_OF_TIME)
    if contested or nearly_alone(transition, heads):
        chance = min(chance, UNEXPLAINED_CHANCE)
    return _likely(verdict.doubted(chance, transition.most_heads), transition)


def _sharpest(transition: Transition) -> HeadVerdict:
    """What the errors say of the heads; where their number has no step, the one that has.

    A step that nobody would take for a slope counts, although a further head refines what is left.
    Else there are two readings of a slope: every further head gains a little, or the one has learnt
    nearly all that there is to learn; where no number has a step, the second is left.
    """
    verdict, errors = transition.verdict, transition.attained
    if transition.labels or transition.reading(verdict.heads).stands_out:
        return verdict
    readings = [transition.reading(heads) for heads in errors if heads - 1 in errors]
    steepest = max(readings, key=lambda each: each.step, default=None)
    if steepest is not None and steepest.stands_out and steepest.step > STEEP:
        return HeadVerdict({steepest.heads: 1.0})
    if 1 not in transition.errors():
        return verdict
    one = transition.reading(1)
    close = one.stands_out and one.floor < SMALL_FLOOR and transition.catches_up
    return HeadVerdict({1: 1.0}) if close else verdict


def _likely(
    verdict: HeadVerdict, transition: Transition
) -> tuple[HeadVerdict | None, Obstacle | None]:
    if verdict.confidence < TOO_DOUBTFUL:
        low, high = verdict.interval
        return None, (
            f"{verdict.heads} heads are the likeliest, but with a chance of "
            f"{100 * verdict.confidence:.0f} % only; {low} to {high} are plausible (errors by "
            f"number of heads: {shown_errors(transition)})",
            "more samples, more seconds, or the function itself",
        )
    return verdict, None


def _one(transition: Transition) -> CurveReading:
    """One head, where it was not seen in descents: they stopped before it, or did not find it."""
    return CurveReading(1, 0.0, 0.0, transition.best, 1.0)
