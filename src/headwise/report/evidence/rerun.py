"""Some runs of a shipped table done again: are its numbers what this code gives, here?

On the same kind of processor with the same versions a run is a function of its specification, so
that nothing less than equality to the last bit will do. Elsewhere last bits differ, and training
carries them further: such numbers are shown beside each other, and the claims are what must agree.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from headwise.core.errors import require
from headwise.core.lines import listed, wrapped
from headwise.core.shown import Printed, Tabled
from headwise.lab.study import Study

_SECONDS = 60.0
_NUMBERS = ["error", "error_last"]


@dataclass(frozen=True)
class RerunEvidence(Printed, Tabled):
    """Runs of a table, drawn at random, with the shipped error and that of running them again.

    `rows` has a row a run: part, seed, error, error_again and whether all its numbers are equal.
    `like` says whether both were made on the same kind of processor with the same versions.
    """

    study: str
    tier: str
    rows: pd.DataFrame
    of: int
    cpu_minutes: float
    cpus: tuple[str, str]
    like: bool

    @staticmethod
    def of_tables(
        study: Study, tier: str, shipped: pd.DataFrame, again: pd.DataFrame, like: bool
    ) -> "RerunEvidence":
        """Put the runs that both tables hold beside each other."""
        ours = again.drop_duplicates("key").set_index("key")
        theirs = shipped.drop_duplicates("key").set_index("key")
        here = theirs.loc[ours.index]
        values = [table[_NUMBERS].to_numpy(float) for table in (here, ours)]
        equal = ((values[0] == values[1]) | (np.isnan(values[0]) & np.isnan(values[1]))).all(1)
        rows = here[["part", "seed", "error"]].assign(error_again=ours["error"], equal=equal)
        minutes = float(ours["cpu_seconds"].sum()) / _SECONDS
        cpus = tuple(", ".join(sorted(set(each["cpu"]))) for each in (here, ours))
        return RerunEvidence(study.name, tier, rows, len(theirs), minutes, (cpus[0], cpus[1]), like)

    @property
    def agrees(self) -> bool:
        """Is every number the shipped one, where it has to be?"""
        return not self.like or bool(self.rows["equal"].all())

    @property
    def factor(self) -> float:
        """How far an error is from the shipped one, at most, as a factor; 1: all are equal."""
        both = self.rows[["error", "error_again"]].to_numpy(float)
        apart = both[~self.rows["equal"].to_numpy(bool)]
        if len(apart) == 0:
            return 1.0
        if not (apart > 0).all():  # diverged in one of them, or exactly nothing
            return float("inf")
        return float(np.exp(np.abs(np.diff(np.log(apart), axis=1)).max()))

    def records(self) -> list[dict[str, Any]]:
        """A row a run."""
        return self.rows.reset_index().to_dict("records")

    def __str__(self) -> str:
        equal, count = int(self.rows["equal"].sum()), len(self.rows)
        said = "all are equal to the last bit"
        if equal < count:
            said = f"{equal} are equal to the last bit, others up to {self.factor:.3g} times apart"
        about = (
            f"{self.study}, tier {self.tier}: {count} of {self.of} runs, drawn at random, done "
            f"again in {self.cpu_minutes:.1f} CPU-minutes: {said}. Shipped: run on "
            f"{self.cpus[0]}; again: on {self.cpus[1]}."
        )
        why = "" if self.like else " Another processor, or another version: last bits may differ."
        head = ("part", "seed", "shipped", "again", "equal")
        rows = [
            (str(part), str(seed), f"{error:.6g}", f"{again:.6g}", "yes" if same else "no")
            for part, seed, error, again, same in self.rows.itertuples(index=False)
        ]
        return "\n".join([*wrapped(about + why), "", *listed(head, rows)])


def drawn_keys(table: pd.DataFrame, minutes: float, seed: int) -> list[str]:
    """Runs at random that took so many CPU-minutes together, at least one."""
    require(minutes > 0, f"minutes is {minutes:g}; it is above 0")
    require(0 <= seed < 2**32, f"the seed is {seed}; it is a whole number from 0 to 2³² − 1")
    runs = table.drop_duplicates("key").sample(frac=1.0, random_state=seed)
    spent = runs["cpu_seconds"].to_numpy(float).cumsum()
    return runs["key"].tolist()[: max(1, int((spent <= _SECONDS * minutes).sum()))]
