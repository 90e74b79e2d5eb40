"""Is the target a function of extrema? Only then does counting influential tokens count heads.

Let H(X) = F_0(z_1, …, z_D) with z_i the extremum over t in S_i of f_i(x_t, t), and let I(X) be the
tokens at which the z_i are attained. Then:

- **Crowd.** At most D tokens matter in *any* sequence. So fill one with tokens that mattered
  elsewhere, at their own positions and without repeats: D of them stay influential, while of a sum
  of which few terms were large all do.
- **Merge.** Insert I(Y) into X at their own positions, and I(X) into Y. Both have the same value:
  the extremum of feature i over X and I(Y) is the larger of both extrema, since what feature i
  attains in Y is in I(Y), and the same holds the other way. (X keeps I(X), so the positions must
  not overlap; a position that always matters, as the first token may, keeps the token of X in
  both.) For a quantile, a pair of tokens that fit together or a minimum of maxima it fails.
- **Together**, where the order matters: tokens that attain extrema stand now here, now there. If a
  position matters only along with another, as those of a window whose sum is the largest do, they
  are read together, which one head can do.
- **Repeat**, where the order does not matter: a sequence of copies of the tokens in I(X) alone
  has the value of X. For a gap between the two largest, or a count, it fails.
- **Drop**, likewise: all other tokens replaced by copies of one of them change nothing. For a
  quantile or the second largest token it fails.

None of them is a proof that the target is a function of extrema; one that fails proves that it is
not. All are asked on many sequences, drawn ones and crowds; of noisy targets crowds are counted
alone, since extremal tokens differ too little for the rest.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from headwise.advise.probe.counting.sensitivity import (
    NOISE_FREE,
    Sensitivity,
    influential,
    recurring,
)
from headwise.advise.probe.samples.function import TargetFunction

_INPUTS = 256
_SAME = 5e-3  # of the target's deviation: a token of a thousandth of the influence was not counted
_REPEATS = 16  # calls over which a noisy value is averaged
_ALLOWED = {"merge": 0.05, "together": 0.0, "repeat": 0.05, "drop": 0.05}  # shares that may fail
# Of a noisy target counting misses tokens that matter little. So what is measured is the mean
# square of the change (at most 1, in units of the variance), and tests that take the missed
# tokens away forgive more: of 12 noisy retrieval tasks up to 0.04, 0.35 and 0.38.
_ALLOWED_NOISY = {"merge": 0.06, "together": 0.0, "repeat": 0.45, "drop": 0.45}
_ALWAYS = 0.9  # a position that matters in this share of the sequences is read for itself
_MOST_READ = 2  # more positions read for themselves may be a sum over them, which one head does
_FEW = 32  # sequences without which a test says nothing
_SEEN = 16  # sequences in which a position must matter to say what it matters with
_SHIFTS = 8  # neighbours that a sequence is compared with
_STREAM = 0xE87


@dataclass(frozen=True)
class Extremum:
    """`violations` by test, and how many tokens matter in a `crowd`; `count` in other sequences."""

    violations: dict[str, float]
    crowd: int
    count: int
    noisy: bool

    @property
    def shown(self) -> bool:
        """Every test was passed, and a crowd has no more influential tokens than a sequence."""
        return self.failed is None

    @property
    def failed(self) -> str | None:
        """The first test that failed, as a sentence."""
        if self.crowd > self.count:
            return (
                f"of a sequence filled with tokens that mattered in others {self.crowd} matter, "
                f"not {self.count}: effects add up as in a sum"
            )
        allowed = _ALLOWED_NOISY if self.noisy else _ALLOWED
        for test, violation in self.violations.items():
            if violation > allowed[test]:
                return _FAILURES[test]
        if "merge" not in self.violations:
            return "too few sequences could be compared"
        return None


_FAILURES = {
    "merge": "influential tokens of one sequence, inserted into another, do not decide its value",
    "together": "some positions matter only together, so that one head may read them",
    "repeat": "the influential tokens alone do not have the value of their sequence",
    "drop": "other tokens than the influential ones matter when they are replaced together",
}


def examine_extremum(
    target: TargetFunction, counted: Sensitivity, permutations: bool, seed: int
) -> Extremum:
    """Ask for crowd, merge, and where the order does not matter repeat and drop."""
    rng = np.random.default_rng([seed, _STREAM])
    inputs = target.draw(_INPUTS, (seed, _STREAM))
    noisy = counted.noise > NOISE_FREE
    noise = target.noise(inputs) if noisy else counted.noise  # in units of these inputs' deviation
    matters = influential(target, inputs, counted.method, noise, rng)
    same = _Same(target, inputs, noisy)
    count = max(counted.count, recurring(matters.sum(1)))
    first = Extremum(
        _violations(same, inputs, matters, permutations, rng), count, count, same.noisy
    )
    if not first.shown:
        return first
    crowds = _crowds(inputs, matters, permutations, rng)
    noise = target.noise(crowds) if noisy else counted.noise
    in_crowds = influential(target, crowds, counted.method, noise, rng)
    later = {} if noisy else _violations(same, crowds, in_crowds, permutations, rng)
    worst = {test: max(value, later.get(test, 0.0)) for test, value in first.violations.items()}
    return Extremum(worst, recurring(in_crowds.sum(1)), count, same.noisy)


def _violations(
    same: "_Same",
    inputs: np.ndarray,
    matters: np.ndarray,
    permutations: bool,
    rng: np.random.Generator,
) -> dict[str, float]:
    found = {
        "merge": _merge(same, inputs, matters, permutations),
        "together": None if permutations else _together(matters),
        "repeat": _repeat(same, inputs, matters, rng) if permutations else None,
        "drop": _drop(same, inputs, matters, rng) if permutations else None,
    }
    return {test: value for test, value in found.items() if value is not None}


class _Same:
    """Do two batches have the same values, up to rounding and noise?"""

    def __init__(self, target: TargetFunction, inputs: np.ndarray, noisy: bool) -> None:
        self.target, self.scale, self.noisy = target, target.deviation(inputs), noisy

    def violated(self, first: np.ndarray, second: np.ndarray) -> float:
        """The share of sequences whose values differ; of noisy targets the mean square change."""
        change = (np.abs(self._values(first) - self._values(second)) / self.scale).max(-1)
        if self.noisy:
            return float(np.minimum(change**2, 1).mean())
        return float((change > _SAME).mean())

    def _values(self, inputs: np.ndarray) -> np.ndarray:
        calls = [self.target(inputs) for _ in range(_REPEATS if self.noisy else 1)]
        return np.mean(calls, axis=0)


def _crowds(
    inputs: Float[np.ndarray, "count length dim"],
    matters: Bool[np.ndarray, "count length"],
    permutations: bool,
    rng: np.random.Generator,
) -> Float[np.ndarray, "count length dim"]:
    """Sequences of tokens that mattered elsewhere; a place where none did keeps what it had."""
    count, length, _ = inputs.shape
    crowds = inputs.copy()
    pool = inputs[matters]
    if permutations and len(pool):
        for row in range(count):
            chosen = rng.permutation(len(pool))[:length]
            crowds[row, : len(chosen)] = pool[chosen]
        return crowds
    for place in range(length):
        rows = np.flatnonzero(matters[:, place])
        if len(rows):
            crowds[:, place] = inputs[rng.choice(rows, count), place]
    return crowds


def _merge(
    same: _Same, inputs: np.ndarray, matters: Bool[np.ndarray, "count length"], permutations: bool
) -> float | None:
    """Each sequence with others, where their influential tokens do not overlap.

    Where the order does not matter, those of the one come first and those of the other last.
    """
    others, theirs = np.roll(inputs, 1, 0), np.roll(matters, 1, 0)
    if permutations:
        (inputs, matters), (others, theirs) = (
            _sorted(inputs, matters, 1),
            _sorted(others, theirs, 0),
        )
    always = matters.mean(0) > _ALWAYS if not permutations else np.zeros(inputs.shape[1], bool)
    if always.sum() > _MOST_READ:
        return None
    pairs = []
    for shift in range(_SHIFTS):
        other, its = np.roll(others, shift, 0), np.roll(theirs, shift, 0)
        fits = ~(matters & its & ~always).any(1) & (matters | its).any(1)
        mine = matters | always  # what X keeps, and Y gets
        here = np.where((its & ~mine)[..., None], other, inputs)[fits]
        pairs.append((here, np.where(mine[..., None], inputs, other)[fits]))
        if sum(len(first) for first, _ in pairs) >= _INPUTS:
            break
    here, there = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return same.violated(here, there) if len(here) >= _FEW else None


def _together(matters: Bool[np.ndarray, "count length"]) -> float:
    """The share of positions that hardly ever matter without a certain other one.

    Positions that always matter are no company: first · last token are two that are read apart.
    """
    times = matters.sum(0)
    seen = (times >= _SEEN) & (matters.mean(0) <= _ALWAYS)
    if not seen.any():
        return 0.0
    along = (matters.T.astype(float) @ matters)[np.ix_(seen, seen)] / times[seen, None]
    np.fill_diagonal(along, 0.0)
    return float((along.max(1) > _ALWAYS).mean())


def _sorted(inputs: np.ndarray, matters: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens in another order: those that matter first, or last."""
    order = np.argsort(matters ^ bool(first), axis=1, kind="stable")
    return np.take_along_axis(inputs, order[..., None], 1), np.take_along_axis(matters, order, 1)


def _repeat(
    same: _Same, inputs: np.ndarray, matters: np.ndarray, rng: np.random.Generator
) -> float | None:
    some = matters.any(1)
    return _with_copies(same, inputs[some], matters[some], matters[some], rng, False)


def _drop(
    same: _Same, inputs: np.ndarray, matters: np.ndarray, rng: np.random.Generator
) -> float | None:
    some = ~matters.all(1)
    return _with_copies(same, inputs[some], matters[some], ~matters[some], rng, True)


def _with_copies(
    same: _Same,
    inputs: np.ndarray,
    matters: np.ndarray,
    sources: np.ndarray,
    rng: np.random.Generator,
    single: bool,
) -> float | None:
    """Every token that does not matter becomes a copy of a source: one for all, or any."""
    if len(inputs) < _FEW:
        return None
    count, length, _ = inputs.shape
    draws = rng.random((count, 1 if single else length, length)) * sources[:, None]
    chosen = np.broadcast_to(draws.argmax(-1), (count, length))
    copies = np.take_along_axis(inputs, chosen[..., None], 1)
    return same.violated(np.where(matters[..., None], inputs, copies), inputs)
