"""Why training supports no answer: each obstacle in a sentence, with what would settle it."""

from math import exp

from headwise.advise.probe.calibration import (
    AS_GOOD,
    LARGEST_FLOOR,
    LARGEST_FLOOR_OF_LABELS,
    LOTTERIES,
    LOTTERY,
    NOTHING_LEARNT,
    ONE_IS_CLOSE,
    SMALL_FLOOR,
    SMALL_FLOOR_OF_LABELS,
    CurveReading,
)
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.transition import STEEP, Transition

OVERFIT = 0.25  # training error below this share of the held-out error is overfitting
# Where heads are enough, more of them lower a small error 6-fold at most. A sharp log-sum-exp has
# its largest step at two heads, and a 10-fold one after it.
HIDDEN_GAIN = 8.0
REFINED_GAIN = 30.0  # nor does a second head that chooses as the first does gain more than that
WHOLLY = 2.0  # times what is as good as none: learnt but for a little noise
_DEEPER = "less noise, more samples, or a deeper network"

Obstacle = tuple[str, str]
"""Why there is no answer, and what would settle it."""


def unlearnt(transition: Transition, clock: Clock, noise: float) -> Obstacle | None:
    """No network learnt the target, or too much of it stays unexplained."""
    errors = transition.errors()
    if not errors:
        return (
            f"{clock.seconds:g} seconds were not enough for one network",
            "more seconds, or fewer or shorter sequences",
        )
    best, error = min(errors, key=lambda heads: errors[heads]), transition.best
    if error > NOTHING_LEARNT:
        train = transition.train_error(best)
        if train < 0.6:
            return (
                f"the networks overfit: their error is {train:.2g} on the training data and "
                f"{error:.2g} on others, of a constant's",
                "more samples",
            )
        return (
            f"nothing was learnt: the held-out error is {error:.2g} of a constant's. The "
            "target is noise, or one attention layer cannot learn it",
            _DEEPER,
        )
    if error - noise > (LARGEST_FLOOR_OF_LABELS if transition.labels else LARGEST_FLOOR):
        return (
            f"{100 * error:.0f} % of the target stays unexplained by any number of heads; it is "
            "noise, or something that one attention layer does not learn and that may need heads "
            "of its own",
            _DEEPER,
        )
    return None


def unclear(transition: Transition, heads: int) -> Obstacle | None:
    """Time or heads were over before the answer was seen, or networks overfit below it."""
    errors = transition.errors()
    if not transition.in_time and heads == min(errors) and min(errors) > 1:
        return (
            f"the time was over with {min(errors)} heads left, and none had been missed",
            "more seconds",
        )
    if heads == transition.most_heads:
        return (
            f"the error still falls at {transition.most_heads} heads",
            "a larger max_heads",
        )
    fewer = heads - 1
    if fewer in errors and transition.train_error(fewer) < OVERFIT * errors[fewer]:
        return (
            f"with {fewer} heads the networks overfit (error {transition.train_error(fewer):.1g} "
            f"on the training data, {errors[fewer]:.1g} on others), so it is not heads that are "
            "missing",
            "more samples",
        )
    return None


def shown_errors(transition: Transition) -> str:
    """The errors by number of heads, up to the number from which they fall no more."""
    errors = transition.errors()
    best = min(errors, key=lambda heads: errors[heads])
    return ", ".join(f"{h}: {errors[h]:.1e}" for h in sorted(errors) if h <= best)


def slope(transition: Transition, reading: CurveReading) -> Obstacle | None:
    """The refusal of an error that falls gradually: what more heads buy."""
    if reading.stands_out:
        return None
    errors = transition.errors()
    fewest, best = min(errors), min(errors, key=lambda heads: errors[heads])
    falls = {h: errors[h - 1] / errors[h] for h in errors if h - 1 in errors and h <= best}
    steepest = max(falls, key=lambda heads: falls[heads], default=best)
    times = falls.get(steepest, 1.0)
    return (
        f"the error falls gradually with the heads ({shown_errors(transition)}), and no number "
        f"stands out: {best} heads instead of {fewest} buy a factor of "
        f"{errors[fewest] / errors[best]:.1f}, the steepest step, to {steepest}, "
        f"one of {times:.1f}. So falls what more heads sharpen, such as a threshold; one head may "
        "be enough",
        "the function itself, or targets without jumps; or there is no sharp answer for this task",
    )


def beaten(transition: Transition, noise: float) -> Obstacle | None:
    """Heads that learnt less than a mean, which each of them contains, were not learnt at all.

    Where much stays unexplained, that more of them gain nothing is then no evidence.
    """
    least, floor = min(transition.errors().values()), max(transition.best - noise, 0.0)
    small = SMALL_FLOOR_OF_LABELS if transition.labels else SMALL_FLOOR
    if floor < small or least <= AS_GOOD * transition.best:
        return None
    return (
        f"a mean over the tokens leaves {100 * transition.best:.0f} % unexplained, and heads, "
        f"which can be a mean, even {100 * least:.0f} %: they were not learnt, and it may take "
        "several",
        _DEEPER,
    )


def hidden_feature(transition: Transition, heads: int) -> Obstacle | None:
    """Errors that are as good as none may still hide a feature of little weight, 1e-2 of another's:
    its head lowers the error by far more than chance and longer training do.
    """
    gain, errors = transition.hidden_gain(heads), transition.errors()
    refined = heads == 1 and transition.one_feature and gain < REFINED_GAIN
    little = gain < HIDDEN_GAIN and (heads > 1 or transition.catches_up)
    if transition.labels or refined or little:
        return None
    more = min((h for h in errors if h > heads), key=lambda h: errors[h])
    return (
        f"{heads} {'head leaves' if heads == 1 else 'heads leave'} {errors[more] * gain:.1e} of a "
        f"constant's error, which would do for most ends, but {more} heads lower it {gain:.0f}×: "
        "there may be a feature of little weight that needs a head of its own",
        "the function itself, or targets from which the main part is subtracted",
    )


def lottery(reading: CurveReading) -> Obstacle | None:
    """Fewer heads can do nothing that more cannot. Where they learn far more all the same, what
    one number of heads learns and another does not is chance, and no evidence of heads; unless it
    was learnt wholly in the end.
    """
    learnt = reading.floor < WHOLLY * reading.solved
    if reading.heads == 1 or reading.lotteries < LOTTERIES or learnt:
        return None
    return (
        f"on {reading.lotteries} ways from many heads to few the many left at least "
        f"{exp(LOTTERY):.0f} times what the few did: what is learnt is a matter of chance, and "
        f"fewer than {reading.heads} heads may do",
        "the function itself, more samples, or targets without heavy tails",
    )


def softened(transition: Transition, heads: int) -> Obstacle | None:
    """A log-sum-exp of the tokens is one average, of values so steep that no network learns it; two
    heads of different sharpness approximate it far better than one, as if each had a feature.
    """
    if not nearly_alone(transition, heads) or _distinct(transition, heads):
        return None
    alone = transition.errors().get(1, 1.0)
    return (
        f"one head leaves only {alone:.1e} of a constant's error; that {heads} heads leave less "
        "may be a feature of little weight, or the one feature approximated better, such as a "
        "soft maximum",
        "the function itself, or targets from which the main part is subtracted",
    )


def nearly_alone(transition: Transition, heads: int) -> bool:
    """Several heads are the answer, and one leaves little."""
    alone = transition.errors().get(1, 1.0)
    return heads > 1 and not transition.labels and alone <= ONE_IS_CLOSE


def _distinct(transition: Transition, heads: int) -> bool:
    """Each head has a feature of its own, among networks that were trained equally long.

    Two choose differently; of more the last one has a step that stands out. Other sharpnesses of
    one feature gain most with the second head.
    """
    if heads == 2:
        return transition.two_features
    usual = transition.in_haste
    last = usual.reading(heads) if heads in usual.errors() else None
    return last is not None and last.stands_out and last.step > STEEP


def read_along(transition: Transition, heads: int) -> Obstacle | None:
    """A head that reads one position beside others can be spared, and training hardly finds how.

    One that averages reads the position along with its other values. One that chooses does where
    the token there decides which feature counts: it gets the largest score of all when the feature
    does not count, and its own value is then the mark of it.
    """
    fixed = transition.fixed_readers(heads)
    if not 0 < fixed < heads:
        return None
    return (
        f"{fixed} of the {heads} heads {'reads' if fixed == 1 else 'read'} one position in all "
        "sequences, which another head may do beside its own work; so fewer may be enough",
        "targets that do not depend on that position, or each of its values apart",
    )


def summary(reading: CurveReading) -> Obstacle | None:
    """The refusal of one wide head that does what takes several narrow ones."""
    if not reading.packed:
        return None
    return (
        "one wide head does as well as several narrow ones, so that it holds a summary of the "
        f"sequence rather than a feature, and {100 * reading.floor:.1f} % of the target stay "
        "unexplained: the rest may need heads, or a layer, of its own",
        "the function itself, more samples, or a deeper network",
    )
