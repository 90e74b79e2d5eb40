"""How many tokens influence the target? Counted on the function itself, without training.

A retrieval target H = F_0(z_1, …, z_D) sees a sequence only through the tokens at which the z_i
are attained. So the tokens that locally influence it are those extremal tokens: D of them, or
fewer where one token serves two features. The largest count over inputs is D.

Three ways to ask whether token t matters:
- gradients, where the target is a differentiable torch function and no two tokens of a sequence
  agree in a coordinate: where two attain a maximum, torch gives each a share of the derivative;
- finite differences: both x_t + v and x_t − v must change the output. A step in one direction
  alone also counts tokens that are nearly extremal: it lifts them over the extremal one;
- copies, where the target is noisy or has steps: x_t is replaced by other tokens of the same
  sequence. That never changes an extremum attained elsewhere, and it takes the extremal token
  itself away, an effect far above noise. Tokens that seem to matter are asked again with fresh
  noise and more repetitions, so that no chance survives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from jaxtyping import Bool, Float

from headwise.advise.probe.samples.function import TargetFunction
from headwise.core.errors import InputError

STEP, COARSE_STEP = 1e-4, 1e-2  # of a token coordinate's standard deviation
LEAST_SHARE = 1e-3  # of the largest influence in the same sequence
NOISE_FREE = 1e-9  # noise below this share of the target's deviation is rounding
SIGMAS = 5.0
COPIES, REPEATS = 3, 16
FIRST_INPUTS, MOST_INPUTS = 256, 2048
ENOUGH_SUPPORT = 8
EXPECTED = 7.0  # inputs that would have one more, were there one more: e⁻⁷ is the chance of none
# Of 31 random retrieval tasks with 4 to 6 features all matter at 7 % of the inputs or more; of the
# mean width of a hull, with 24 features, ever more do at ever fewer inputs: the most at 0.4 to 4 %.
ENOUGH_SHARE = 0.05
_STREAM = 0x5E45


@dataclass(frozen=True)
class Sensitivity:
    """`counts[i]` tokens influence the target at input i; `count` is the largest that recurs."""

    count: int
    counts: np.ndarray
    length: int
    method: str
    noise: float  # standard deviation of repeated calls, in units of the target's own

    @property
    def support(self) -> int:
        """Inputs at which that many tokens matter."""
        return int((self.counts >= self.count).sum())

    @property
    def saturated(self) -> bool:
        """So many inputs have the largest count that a larger one would have been seen."""
        enough = self.support >= max(ENOUGH_SUPPORT, ENOUGH_SHARE * len(self.counts))
        return enough and would_have_seen_more(self.counts)

    @property
    def precision(self) -> float:
        """The share of the target's variance below which a part of it is not seen."""
        hidden = SIGMAS * self.noise * sqrt(1 / REPEATS + 1 / (4 * REPEATS))
        return max(LEAST_SHARE, hidden if self.noise > NOISE_FREE else 0.0) ** 2

    @property
    def sparse(self) -> bool:
        """Few of the tokens matter, as in retrieval; an average would depend on all."""
        return 1 <= self.count <= self.length / 2


def measure_sensitivity(target: TargetFunction, seed: int = 0) -> Sensitivity:
    """Count influential tokens on as many inputs as it takes for the largest count to recur."""
    counts = np.zeros(0, np.int64)
    method, noise, length = "", 0.0, 1
    while len(counts) < MOST_INPUTS:
        block = len(counts) // FIRST_INPUTS
        inputs = target.draw(FIRST_INPUTS, (seed, block, _STREAM))
        length = inputs.shape[1]
        rng = np.random.default_rng([seed, block, _STREAM])
        if not method:
            noise = target.noise(inputs)
            method = _choose(target, inputs, noise)
        counts = np.concatenate([counts, _METHODS[method](target, inputs, noise, rng).sum(1)])
        seen = (counts >= recurring(counts)).sum() >= ENOUGH_SUPPORT
        if seen and would_have_seen_more(counts):
            break
    return Sensitivity(recurring(counts), counts, length, method, noise)


def count_tokens(
    target: TargetFunction, inputs: np.ndarray, method: str, rng: np.random.Generator
) -> int:
    """The largest count that recurs on these inputs, by the method that suited others."""
    return recurring(_METHODS[method](target, inputs, 0.0, rng).sum(1))


def influential(
    target: TargetFunction,
    inputs: np.ndarray,
    method: str,
    noise: float,
    rng: np.random.Generator,
) -> Bool[np.ndarray, "inputs length"]:
    """Which tokens matter, by a method that suited other inputs."""
    return _METHODS[method](target, inputs, noise, rng)


def recurring(counts: np.ndarray) -> int:
    """The largest count that two inputs reach: one alone may be an accident."""
    return int(np.sort(counts)[-2])


def would_have_seen_more(counts: np.ndarray) -> bool:
    """Were there one more feature, would some of these inputs have had a larger count?

    A feature is missed where its token serves another one too, or hardly matters. With λ missed on
    average and many features, none is at a share e^−λ of the inputs and one at λ e^−λ. So if the
    largest count, at a share p of the inputs, had one missed, p = λ e^−λ, and e^−λ = p/λ of the
    inputs would show one more. The larger of the two solutions is the worse.
    """
    share = float((counts >= recurring(counts)).mean())
    if share >= exp(-1):  # the most that λ e^−λ can be, at λ = 1
        return len(counts) * exp(-1) >= EXPECTED
    missed = 1.0 + sqrt(2.0)
    for _ in range(50):  # λ = log λ − log p: a contraction beyond λ = 1
        missed = log(missed) - log(share)
    return len(counts) * share / missed >= EXPECTED


def _choose(target: TargetFunction, inputs: np.ndarray, noise: float) -> str:
    if noise > NOISE_FREE:
        return "copies"
    if target.differentiable(inputs[:2]) and not _ties(inputs):
        return "gradients"
    try:
        probe = _by_differences(target, inputs, noise, np.random.default_rng(0))
    except InputError:  # a step left the function's domain, as of log at 0; copies never do
        return "copies"
    return "differences" if probe.any() else "copies"  # a step function has no slope


def _ties(inputs: np.ndarray) -> bool:
    """Do two tokens of a sequence agree in a coordinate, as whole numbers, flags and zeros do?"""
    return bool((np.diff(np.sort(inputs, axis=1), axis=1) == 0).any())


def _by_gradients(
    target: TargetFunction, inputs: np.ndarray, noise: float, rng: np.random.Generator
) -> Bool[np.ndarray, "inputs length"]:
    return _large(np.abs(target.gradients(inputs)).max(-1))


def _by_differences(
    target: TargetFunction, inputs: np.ndarray, noise: float, rng: np.random.Generator
) -> Bool[np.ndarray, "inputs length"]:
    spread = inputs.reshape(-1, inputs.shape[-1]).std(0)
    step = (STEP if target.answers_in_double else COARSE_STEP) * spread
    steps = step * rng.choice([-1.0, 1.0], inputs.shape) * rng.uniform(0.5, 1.0, inputs.shape)
    here, (rows, tokens) = target(inputs), _everywhere(inputs)
    unit = target.deviation(inputs)
    changes = [
        np.abs(
            target.with_token(
                inputs, rows, tokens, inputs[rows, tokens] + sign * steps[rows, tokens]
            )
            - here[rows]
        )
        / unit
        for sign in (1.0, -1.0)
    ]
    return _large(np.minimum(*changes).max(-1).reshape(inputs.shape[:2]))


def _by_copies(
    target: TargetFunction, inputs: np.ndarray, noise: float, rng: np.random.Generator
) -> Bool[np.ndarray, "inputs length"]:
    """Tokens whose replacement by any of a few others of the sequence changes the target."""
    count, length, _ = inputs.shape
    deviation = noise * target.deviation(inputs)
    quiet = LEAST_SHARE * target.deviation(inputs) if noise <= NOISE_FREE else 0 * deviation
    shifts = rng.permuted(np.tile(np.arange(1, length), (count, 1)), axis=1)[:, :COPIES]

    def smallest_change(rows: np.ndarray, tokens: np.ndarray, repeats: int) -> np.ndarray:
        """The least change over the copies at (row, token), in standard errors."""
        here = np.mean([target(inputs) for _ in range(4 * repeats)], axis=0)[rows]
        error = deviation * np.sqrt(1 / repeats + 1 / (4 * repeats)) + quiet
        least = np.full(len(rows), np.inf)
        for copy in range(shifts.shape[1]):
            values = inputs[rows, (tokens + shifts[rows, copy]) % length]
            answers = (target.with_token(inputs, rows, tokens, values) for _ in range(repeats))
            there = sum(answers) / repeats
            least = np.minimum(least, (np.abs(there - here) / error).max(-1))
        return least

    rows, tokens = _everywhere(inputs)
    seems = smallest_change(rows, tokens, 1) > (SIGMAS / 2 if noise > NOISE_FREE else 1)
    matters = np.zeros((count, length), bool)
    rows, tokens = rows[seems], tokens[seems]
    if noise > NOISE_FREE and len(rows):
        sure = smallest_change(rows, tokens, REPEATS) > SIGMAS
        rows, tokens = rows[sure], tokens[sure]
    matters[rows, tokens] = True
    return matters


def _everywhere(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, token) of every token of every sequence."""
    rows, tokens = np.indices(inputs.shape[:2])
    return rows.ravel(), tokens.ravel()


def _large(influence: Float[np.ndarray, "inputs length"]) -> Bool[np.ndarray, "inputs length"]:
    largest = influence.max(1, keepdims=True)
    return (influence > LEAST_SHARE * largest) & (influence > 0)


_METHODS: dict[str, Callable[..., np.ndarray]] = {
    "gradients": _by_gradients,
    "differences": _by_differences,
    "copies": _by_copies,
}
