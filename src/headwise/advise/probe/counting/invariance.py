"""Does the order of the tokens matter, and do more tokens matter in longer sequences?

Dropping tokens is a fair way to vary the length only where the target does not depend on their
order, so that is tested first.
"""

from dataclasses import dataclass

import numpy as np

from headwise.advise.probe.counting.sensitivity import NOISE_FREE, SIGMAS, Sensitivity, count_tokens
from headwise.advise.probe.samples.function import TargetFunction

_INPUTS = 256
_ROUNDING = 1e-6  # of the target's deviation
_ASKED_AGAIN, _REPEATS = 32, 32  # sequences whose value seems to change, and calls on each
_STREAM = 0x1A7A


@dataclass(frozen=True)
class Invariance:
    """`counts_by_length`: influential tokens, also of shorter sequences where those make sense."""

    permutations: bool
    counts_by_length: dict[int, int]

    @property
    def grows_with_length(self) -> bool:
        """The count is no property of the task if every longer sequence has a larger one."""
        counts = [self.counts_by_length[length] for length in sorted(self.counts_by_length)]
        return len(counts) > 1 and counts[-1] > 1.5 * counts[0] and counts[-1] > counts[-2]


def look_at_shorter(target: TargetFunction, counted: Sensitivity, seed: int) -> Invariance:
    """Permute the tokens; if nothing changes, count again in subsets of them."""
    rng = np.random.default_rng([seed, _STREAM])
    inputs = target.draw(_INPUTS, (seed, _STREAM))
    length = inputs.shape[1]
    order = rng.permuted(np.tile(np.arange(length), (len(inputs), 1)), axis=1)
    shuffled = np.take_along_axis(inputs, order[:, :, None], 1)
    if _differs(target, inputs, shuffled, counted.noise > NOISE_FREE):
        return Invariance(False, {})
    counts = {length: counted.count}
    for share in (2, 4):
        part = inputs[:, : length // share]
        enough = part.shape[1] >= 2 * counted.count + 2
        if counted.noise <= NOISE_FREE and enough and target.accepts_length(part):
            counts[part.shape[1]] = count_tokens(target, part, counted.method, rng)
    return Invariance(True, counts)


def _differs(target: TargetFunction, inputs: np.ndarray, shuffled: np.ndarray, noisy: bool) -> bool:
    """Does a value change with the order, beyond what rounding and noise do?

    Of a noisy target the sequences that seem to change most are asked again, often enough to know
    the noise of each: of many comparisons one is always large by chance, and noise may be uneven.
    """
    unit = target.deviation(inputs)
    change = (np.abs(target(shuffled) - target(inputs)) / unit).max(-1)
    if not noisy:
        return bool((change > _ROUNDING).any())
    most = np.argsort(-change)[:_ASKED_AGAIN]
    here, there = (
        np.stack([target(each[most]) for _ in range(_REPEATS)]) for each in (inputs, shuffled)
    )
    error = np.sqrt((here.var(0, ddof=1) + there.var(0, ddof=1)) / _REPEATS)
    sure = np.abs(here.mean(0) - there.mean(0)) > SIGMAS * error + _ROUNDING * unit
    return bool(sure.any())
