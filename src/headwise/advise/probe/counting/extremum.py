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
- **Double**, likewise: how often a token occurs is of no importance. Some tokens replaced by copies
  of influential ones that stay have the same effect as replaced by copies of others that stay: the
  same tokens are gone, and none is new. Whatever adds up fails, a soft maximum as well as a sum;
  tokens that noise hides do no harm, since both lose the same.
- **Drop**, likewise: all other tokens replaced by copies of one of them change nothing. For a
  quantile or the second largest token it fails.

A target with jumps, such as a label, need not change when an extremal token goes, and I(X) is then
not seen whole. Where one token matters at most, sequences in which one does show all of it, and
only they are asked, if every value that is not rare occurs among them. (Whether the token with the
largest x has the largest y, too, is seen to depend on one token where it has, on none where not.)

None of them is a proof that the target is a function of extrema; one that fails proves that it is
not. All are asked on many sequences, drawn ones and crowds; of noisy targets crowds are counted
alone, since extremal tokens differ too little for the rest.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headwise.advise.probe.counting.sensitivity import (
    NOISE_FREE,
    Sensitivity,
    influential,
    recurring,
)
from headwise.advise.probe.counting.surgery import (
    FEW,
    Pair,
    crowds_of,
    doubled,
    dropped,
    merged,
    read_together,
    repeated,
)
from headwise.advise.probe.samples.function import TargetFunction

_INPUTS = 256
_SAME = 5e-3  # of the target's deviation: a token of a thousandth of the influence was not counted
_REPEATS = 16  # calls over which a noisy value is averaged
# Shares of the sequences that may fail.
_ALLOWED = {"merge": 0.05, "together": 0.0, "repeat": 0.05, "drop": 0.05, "double": 0.05}
# Of a noisy target counting misses tokens that matter little. So what is measured is the mean
# square of the change (at most 1, in units of the variance), and tests that take the missed
# tokens away forgive more: of 12 noisy retrieval tasks up to 0.04, 0.35 and 0.38.
# Of the double test noise is subtracted, with four standard errors.
_ALLOWED_NOISY = {"merge": 0.06, "together": 0.0, "repeat": 0.45, "drop": 0.45, "double": 2e-5}
_ALLOWED_WHOLE = 5e-3
_WHOLE = ", all seen"
_SURE = 4.0  # standard errors
_RARE = 0.05  # values of a jumping target that fewer sequences have need not be seen whole
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
        for name, violation in self.violations.items():
            test = name.removesuffix(_WHOLE)
            if violation > (allowed[test] if name == test else _ALLOWED_WHOLE):
                return _FAILURES[test]
        if "merge" not in self.violations:
            return "too few sequences could be compared"
        return None


_FAILURES = {
    "merge": "influential tokens of one sequence, inserted into another, do not decide its value",
    "together": "some positions matter only together, so that one head may read them",
    "repeat": "the influential tokens alone do not have the value of their sequence",
    "double": "how often a token occurs matters, so that effects add up as in an average",
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
    jumps = counted.method == "copies" and not noisy and count == 1
    some = np.flatnonzero(matters.any(1))
    jumps = jumps and _all_values(target(inputs), some)
    if jumps:
        inputs, matters = inputs[some], matters[some]
    first = Extremum(
        _violations(same, inputs, matters, permutations, rng), count, count, same.noisy
    )
    if not first.shown:
        return first
    whole = matters.sum(1) == count
    if noisy and whole.sum() >= FEW:
        strict = _violations(same, inputs[whole], matters[whole], permutations, rng, whole=True)
        first = Extremum({**first.violations, **_named(strict)}, count, count, noisy)
        if not first.shown:
            return first
    crowds = crowds_of(inputs, matters, permutations, rng)
    noise = target.noise(crowds) if noisy else counted.noise
    in_crowds = influential(target, crowds, counted.method, noise, rng)
    if jumps:
        crowds, in_crowds = crowds[in_crowds.any(1)], in_crowds[in_crowds.any(1)]
    later = {} if noisy else _violations(same, crowds, in_crowds, permutations, rng)
    worst = {test: max(value, later.get(test, 0.0)) for test, value in first.violations.items()}
    crowd = recurring(in_crowds.sum(1)) if len(in_crowds) > 1 else 0
    return Extremum(worst, crowd, count, same.noisy)


def _named(strict: dict[str, float]) -> dict[str, float]:
    """Tests on sequences in which all that matters is seen, by names of their own."""
    return {f"{test}{_WHOLE}": value for test, value in strict.items() if test != "double"}


def _all_values(values: Float[np.ndarray, "count outputs"], some: np.ndarray) -> bool:
    """Does every value that is not rare occur where the extremal token is seen?"""
    kinds, which, times = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    seen = np.bincount(which.ravel()[some], minlength=len(kinds))
    common = times > _RARE * len(values)
    return bool(common.any() and (seen[common] > 0).all() and len(some) >= FEW)


def _violations(
    same: "_Same",
    inputs: np.ndarray,
    matters: np.ndarray,
    permutations: bool,
    rng: np.random.Generator,
    whole: bool = False,
) -> dict[str, float]:
    """How far each test fails; where all that matters is seen, noise is all that is forgiven."""
    pairs: dict[str, Pair | None] = {"merge": merged(inputs, matters, permutations)}
    if permutations:
        pairs |= {
            "repeat": repeated(inputs, matters, rng),
            "drop": dropped(inputs, matters, rng),
            "double": doubled(inputs, matters, rng),
        }
    exact = {"merge", "repeat", "drop", "double"} if whole else {"double"}
    found = {
        test: (same.shifted if test in exact else same.violated)(*pair)
        for test, pair in pairs.items()
        if pair is not None
    }
    return found if permutations else {**found, "together": read_together(matters)}


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

    def shifted(self, first: np.ndarray, second: np.ndarray) -> float:
        """The same, of noisy targets beyond what noise does to it: by four standard errors."""
        if not self.noisy:
            return self.violated(first, second)
        here, there = self._calls(first), self._calls(second)
        change = (here.mean(0) - there.mean(0)) / self.scale
        noise = (here.var(0, ddof=1) + there.var(0, ddof=1)) / _REPEATS / self.scale**2
        beyond = change**2 - noise  # (sequences, outputs): zero on average if nothing changes
        error = beyond.std(0, ddof=1) / np.sqrt(len(beyond))
        return float((beyond.mean(0) - _SURE * error).max())

    def _values(self, inputs: np.ndarray) -> np.ndarray:
        return self._calls(inputs).mean(0)

    def _calls(self, inputs: np.ndarray) -> np.ndarray:
        return np.stack([self.target(inputs) for _ in range(_REPEATS if self.noisy else 1)])
