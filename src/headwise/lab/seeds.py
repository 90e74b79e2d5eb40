"""The seeds of a result table as a sample: tables as other seeds could have given them.

Two things are unknown: which seeds there could have been, and which of those another run would
draw. So seeds are drawn twice: with replacement out of those that were run, which stands for what
could have been, then out of those again, which is another run. Each error is then moved by noise of
the width n^(−1/5) times the spread of its setting's n seeds (a smoothed bootstrap), for otherwise
a minimum could never be below the least that was seen. For a mean the variance comes out near
2·s²/n, that of the difference of two runs: (1 − 1/n)(2 − 1/n)(1 + n^(−2/5)) s²/n, which is 2.07
times s²/n at n = 4 and 2.36 at n = 8.

The spread is that of the densest half, where it is less than the standard deviation: seeds that
are stuck lie decades above the others, and between the two there is nothing. Simulated for a
minimum or a median over 8 or 12 seeds of which up to 60 % are stuck, at most 5 % of tables are
decided and then contradicted by fresh seeds; with 4 seeds of which some are stuck, 15 %. Therefore
a setting with a stuck seed needs eight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from headwise.lab.summary import STUCK

LEAST_SEEDS = 4
LEAST_WITH_STUCK = 8
_UNREAD = ("specification", "key", "unit", "engine", "cpu", "headwise_version", "finished")


@dataclass(frozen=True)
class SeedGroups:
    """A result table, and which of its rows are the seeds of one setting.

    With `paired` seeds, one draw serves all settings: a seed is a row of every setting. `ratio`:
    errors are positive and spread by factors.
    """

    table: pd.DataFrame
    groups: tuple[np.ndarray, ...]
    paired: bool
    ratio: bool

    @staticmethod
    def of(
        table: pd.DataFrame, setting: Sequence[str], paired: bool = False, ratio: bool = True
    ) -> "SeedGroups":
        """The groups of a table whose settings are told apart by these columns."""
        kept = table.drop(columns=[name for name in _UNREAD if name in table])
        kept = kept.sort_values("seed", kind="stable").reset_index(drop=True)
        texts = [name for name in kept if isinstance(kept[name].dtype, pd.StringDtype)]
        kept = kept.astype(dict.fromkeys(texts, object))  # comparing them is several times as fast
        names = [name for name in ("part", *setting) if name in kept]
        found = kept.groupby(names, sort=False, dropna=False).indices.values()
        return SeedGroups(kept, tuple(np.asarray(rows) for rows in found), paired, ratio)

    @property
    def few(self) -> np.ndarray:
        """The rows of settings that have too few seeds."""
        errors = self.table["error"].to_numpy(float)
        short = [
            rows
            for rows in self.groups
            if len(rows) < LEAST_SEEDS
            or (len(rows) < LEAST_WITH_STUCK and self.ratio and _some_stuck(errors[rows]))
        ]
        return np.concatenate(short) if short else np.empty(0, int)

    def restricted(self, rows: np.ndarray) -> "SeedGroups":
        """Only the settings whose rows are among these."""
        chosen = set(rows.tolist())
        kept = [group for group in self.groups if group[0] in chosen]
        place = np.zeros(len(self.table), int)
        place[np.sort(rows)] = np.arange(len(rows))
        table = self.table.iloc[np.sort(rows)].reset_index(drop=True)
        return SeedGroups(table, tuple(place[group] for group in kept), self.paired, self.ratio)

    def half(self, which: int) -> pd.DataFrame:
        """Every other seed of each setting, from the first (0) or the second (1) on."""
        return self.table.iloc[np.concatenate([rows[which::2] for rows in self.groups])]

    def resamples(self, count: int, seed: int) -> Iterator[pd.DataFrame]:
        """Tables as other seeds could have given them."""
        rng = np.random.default_rng(seed)
        errors = self.table["error"].to_numpy(float)
        scale = np.log(np.where(errors > 0, errors, np.nan)) if self.ratio else errors
        widths = [_spread(scale[rows]) * len(rows) ** -0.2 for rows in self.groups]
        sizes = [len(rows) for rows in self.groups]
        width, first = np.repeat(widths, sizes), np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
        places = np.concatenate(self.groups)
        same, differing = self._by_setting
        for _ in range(count):
            drawn, noise = self._draws.of(rng)
            rows, noise = places[first + drawn], width * noise
            found = same.copy(deep=False)
            for name in differing:
                found[name] = self.table[name].array.take(rows)
            found["error"] = errors[rows] * np.exp(noise) if self.ratio else errors[rows] + noise
            yield found

    @cached_property
    def _by_setting(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """The table in the order of the groups, seeds numbered, and the columns that seeds change.

        Whichever seeds of a setting are drawn, the other columns are the same.
        """
        places = np.concatenate(self.groups)
        sizes = [len(rows) for rows in self.groups]
        firsts = np.repeat([rows[0] for rows in self.groups], sizes)
        whole = self.table.iloc[places].reset_index(drop=True)  # a claim may look rows up by it
        whole["seed"] = np.concatenate([np.arange(size) for size in sizes])
        names = [name for name in whole if name not in ("seed", "error")]
        differing = tuple(name for name in names if _differs(self.table[name], places, firsts))
        for name in (*differing, "error"):  # in a place of its own it is replaced at no cost
            whole[name] = whole[name].copy()
        return whole, differing

    @cached_property
    def _draws(self) -> "_Draws":
        """Settings share a draw where seeds are paired and all of them are there."""
        most = max(len(rows) for rows in self.groups)
        sizes, of_rows, first = [], [], 0
        together: int | None = None
        for group in self.groups:
            joint = self.paired and len(group) == most
            if joint and together is not None:
                start = together
            else:
                start, first = first, first + len(group)
                sizes += [(start, len(group))] * len(group)
                together = start if joint else together
            of_rows.append(start + np.arange(len(group)))
        starts, counts = np.array(sizes).T
        return _Draws(starts, counts, np.concatenate(of_rows))


@dataclass(frozen=True)
class _Draws:
    """Seeds drawn twice with replacement, and noise, all settings in one go.

    A place stands for a seed of a draw, which begins at `starts` and has `counts` seeds; `of_rows`
    says which place a row of the table has.
    """

    starts: np.ndarray
    counts: np.ndarray
    of_rows: np.ndarray

    def of(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Of every row: which of its setting's seeds is drawn, and its noise."""
        once, again = (rng.random((2, len(self.counts))) * self.counts).astype(int)
        twice = once[self.starts + again]
        return twice[self.of_rows], rng.standard_normal(len(self.counts))[self.of_rows]


def _differs(column: pd.Series, places: np.ndarray, others: np.ndarray) -> bool:
    """Does a column hold other values at these places than at those?"""
    try:
        codes, _ = pd.factorize(column)
    except TypeError:  # values without a hash, such as lists
        return True
    return bool((codes[places] != codes[others]).any())


def _some_stuck(errors: np.ndarray) -> bool:
    known = errors[~np.isnan(errors)]
    return len(known) < len(errors) or bool((known > STUCK * known.min(initial=np.inf)).any())


def _spread(values: np.ndarray) -> float:
    """The standard deviation, or the densest half's where that is less; 0 of one value."""
    known = np.sort(values[np.isfinite(values)])
    if len(known) < 2:
        return 0.0
    inside = len(known) // 2 + 1
    densest = float((known[inside - 1 :] - known[: len(known) - inside + 1]).min())
    return min(float(known.std(ddof=1)), densest / 1.35)  # 1.35 σ: the middle half of a Gaussian
