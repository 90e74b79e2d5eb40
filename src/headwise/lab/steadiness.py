"""Would other seeds give the same verdict? A claim is asked again on seeds drawn from those run.

A verdict stands if other seeds give it with a probability of 95 % at least, if every setting that
the claim rests on has seeds enough, and if neither half of the seeds decides the opposite.
Otherwise: "cannot tell". How seeds are drawn, and how many are enough: `headwise.lab.seeds`.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from headwise.lab.seeds import LEAST_SEEDS, LEAST_WITH_STUCK, SeedGroups
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Status, Study, Verdict, said_share

ENOUGH = 0.95
RESAMPLES = 200
ALL_LOST = "every run that is finished diverged"
_DECIDED: tuple[Status, ...] = ("holds", "does not hold")


def judge_all(
    study: Study, table: pd.DataFrame, ratio: bool = True, missing: str = ""
) -> Mapping[Claim, Verdict]:
    """The verdict on every claim of a study, "cannot tell" where other seeds could change it.

    `ratio`: errors are positive and compared by their ratio. `missing` says that runs are: they
    could still change what no other seed could.
    """
    if not len(table):
        return {claim: claim.check(table) for claim in study.claims}
    if all_lost(table):
        return dict.fromkeys(study.claims, Verdict("cannot tell", "", why=ALL_LOST))
    seeds = SeedGroups.of(table, study.settings, study.paired, ratio)
    judged = {claim: judge(claim, seeds) for claim in study.claims}
    return {
        claim: _undecided(found, missing) if claim.exact and missing else found
        for claim, found in judged.items()
    }


def so_far(study: Study, table: pd.DataFrame) -> Mapping[Claim, Verdict]:
    """What the runs of a study that goes on say of its claims, none of which is decided yet."""
    if all_lost(table):
        return dict.fromkeys(study.claims, Verdict("cannot tell", "", why=ALL_LOST))
    found = {claim: claim.check(table) for claim in study.claims}
    return {claim: _undecided(each, "the study is running") for claim, each in found.items()}


def all_lost(table: pd.DataFrame) -> bool:
    """Is there no error at all?"""
    return bool(len(table)) and bool(table["error"].isna().all())


def conclude(study: Study, table: pd.DataFrame, ratio: bool = True) -> Conclusion:
    """A study's answer, or that other seeds could give another: the finding, judged as a claim."""
    if all_lost(table):
        return Conclusion(f"Nothing can be said: {ALL_LOST}.", None, "other settings of training")
    found = study.finding(table)
    if not found.conclusive or not len(table):
        return found

    def same_answer(results: pd.DataFrame) -> Verdict:
        again = study.finding(results)
        if not again.conclusive:
            return Verdict("cannot tell", again.sentence)
        return Verdict.of(found.agrees_with(again), again.sentence)

    claim = Claim("the answer", "", same_answer)
    judged = judge(claim, SeedGroups.of(table, study.settings, study.paired, ratio))
    if judged.status == "holds":
        return found
    return Conclusion(
        f"Not settled, {judged.why}. What these seeds say: {found.sentence}",
        None,
        found.settled_by or "more seeds, or a larger tier",
    )


def judge(claim: Claim, seeds: SeedGroups, resamples: int = RESAMPLES) -> Verdict:
    """The verdict on a claim, and whether other seeds would give it."""
    found = claim.check(seeds.table)
    if claim.exact or found.status not in _DECIDED:
        return found
    few = seeds.few
    if len(few) and _changed(_asked_of_less(claim, seeds.table.drop(index=few)), found):
        return _untold(
            found,
            f"too few seeds: a setting needs {LEAST_SEEDS}, and {LEAST_WITH_STUCK} where one of "
            "them is stuck",
        )
    seeds = _relevant(claim, found, seeds)
    again = _asked_again(claim, found.status, seeds, resamples)
    same = float(np.mean([each.status == found.status for each in again]))
    judged = replace(found, same=same, interval=_interval(again))
    if same < ENOUGH:
        return _untold(judged, f"other seeds would say the same in {said_share(same)} of cases")
    if any(status in _DECIDED and status != found.status for status in halves(claim, seeds)):
        return _untold(judged, "the two halves of the seeds disagree")
    return judged


def halves(claim: Claim, seeds: SeedGroups) -> tuple[Status, Status]:
    """What each of two disjoint halves of the seeds says of a claim, without any doubt."""
    first, second = (claim.check(seeds.half(which)).status for which in (0, 1))
    return first, second


def _asked_again(claim: Claim, status: Status, seeds: SeedGroups, resamples: int) -> list[Verdict]:
    """The verdicts on resamples; no more of them once too many differ, or half and none did."""
    again: list[Verdict] = []
    differing = 0
    for table in seeds.resamples(resamples, _own_seed(claim)):
        again.append(claim.check(table))
        differing += again[-1].status != status
        if differing > (1 - ENOUGH) * resamples or (2 * len(again) >= resamples and not differing):
            break
    return again


def _relevant(claim: Claim, found: Verdict, seeds: SeedGroups) -> SeedGroups:
    """Without the parts of the study that the claim does not look at: it is quicker so."""
    parts = seeds.table["part"]
    names = parts.unique()
    if len(names) < 2:
        return seeds
    read = [
        name for name in names if _changed(_asked_of_less(claim, seeds.table[parts != name]), found)
    ]
    kept = parts.isin(read)
    if not read or _changed(_asked_of_less(claim, seeds.table[kept]), found):
        return seeds
    return seeds.restricted(np.flatnonzero(kept))


def _asked_of_less(claim: Claim, table: pd.DataFrame) -> Verdict:
    """What a claim says where settings are missing; one that fails there rests on them."""
    try:
        return claim.check(table)
    except Exception:  # a claim is anyone's function, written for whole tables
        return NOT_TESTED


def _untold(verdict: Verdict, why: str) -> Verdict:
    return replace(verdict, status="cannot tell", why=why)


def _undecided(verdict: Verdict, why: str) -> Verdict:
    return _untold(verdict, why) if verdict.status in _DECIDED else verdict


def _changed(verdict: Verdict, whole: Verdict) -> bool:
    """Does a claim say something else without some rows? If not, it does not rest on them."""
    return (verdict.status, verdict.numbers) != (whole.status, whole.numbers)


def _interval(verdicts: Sequence[Verdict]) -> tuple[float, float] | None:
    values = [each.value for each in verdicts if each.value is not None]
    if not values:
        return None
    low, high = np.quantile(np.asarray(values, float), [0.025, 0.975])
    return float(low), float(high)


def _own_seed(claim: Claim) -> int:
    """The same claim is resampled in the same way, whatever other claims there are."""
    return zlib.crc32(claim.statement.encode())
