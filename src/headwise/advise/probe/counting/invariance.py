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
    change = np.abs(target(shuffled) - target(inputs)) / target.deviation(inputs)
    noise = target.noise(inputs) if counted.noise > NOISE_FREE else counted.noise
    allowed = _ROUNDING + (SIGMAS + 1) * noise
    if not bool((change < allowed).all()):
        return Invariance(False, {})
    counts = {length: counted.count}
    for share in (2, 4):
        part = inputs[:, : length // share]
        enough = part.shape[1] >= 2 * counted.count + 2
        if counted.noise <= NOISE_FREE and enough and target.accepts_length(part):
            counts[part.shape[1]] = count_tokens(target, part, counted.method, rng)
    return Invariance(True, counts)
