"""What was predicted of each variant before any run, why, and what the results say of it.

Each check is a function of the result table. Where a transition lies is told with an interval over
seeds: a prediction inside an interval that holds other values too cannot tell.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from headwise.core.intervals import Interval
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Verdict
from headwise.studies.cells import least, matching
from headwise.studies.variants.models import BANDS
from headwise.studies.variants.transition import FALL, transitions

Check = Callable[[pd.DataFrame], Verdict]

WHOLE = "heads"  # the part in which every feature looks at the whole sequence
PARTS = "positions"
CLOSED, SOLVED = 0.5, 0.1  # of a gap; of the error of answering zero


def falls_at(models: tuple[str, ...], expected: Callable[[int], int], part: str = WHOLE) -> Check:
    """The transition of each model lies at `expected` of the intrinsic dimension."""

    def check(results: pd.DataFrame) -> Verdict:
        rows = transitions(results, part, models)
        if rows.empty:
            return NOT_TESTED
        right, possible, words = [], [], []
        for row in rows.itertuples():
            wanted, seen = expected(row.dim), row.found
            right.append(seen.at == wanted and seen.certain)
            possible.append(seen.low <= wanted <= seen.high)
            words.append(f"{row.model}, D = {row.dim}, T = {row.length}: at {seen}")
        return _verdict(all(right), all(possible), "; ".join(words))

    return check


def never_falls(models: tuple[str, ...]) -> Check:
    """No step of the sweep lowers the error by FALL."""

    def check(results: pd.DataFrame) -> Verdict:
        rows = transitions(results, WHOLE, models)
        if rows.empty:
            return NOT_TESTED
        words = [f"{r.model}, D = {r.dim}, T = {r.length}: {r.found}" for r in rows.itertuples()]
        return Verdict.of(all(row.found.at is None for row in rows.itertuples()), "; ".join(words))

    return check


def mixing_repairs_rank(results: pd.DataFrame) -> Verdict:
    """How much of the gap from rank 1 to full rank, in logarithms, talking heads close."""
    errors = _by_model(results, "rank")
    if not {("plain", 1), ("talking", 1)} <= errors.keys():
        return NOT_TESTED
    full = max((rank for model, rank in errors if model == "plain"), default=1)
    gap = _difference(errors["plain", 1], errors["plain", full])
    gained = _difference(errors["plain", 1], errors["talking", 1])
    share = gained.mean / gap.mean if gap.mean else np.nan
    numbers = (
        f"nearest neighbour, error of rank 1: plain {_middle(errors['plain', 1])}, talking "
        f"{_middle(errors['talking', 1])}; plain at rank {full}: "
        f"{_middle(errors['plain', full])}; talking closes {100 * share:.0f} % of the gap"
    )
    if gap.low <= 0:
        return Verdict("cannot tell", f"no gap to close is seen: {numbers}")
    return _verdict(gained.low > 0 and share >= CLOSED, gained.high >= CLOSED * gap.low, numbers)


def grouping_keeps_rank(results: pd.DataFrame) -> Verdict:
    """Grouped heads of rank 1 are no better than plain ones."""
    errors = _by_model(results, "rank")
    grouped = [key for key in errors if key[0].startswith("grouped") and key[1] == 1]
    if not grouped or ("plain", 1) not in errors:
        return NOT_TESTED
    gaps = {key[0]: _difference(errors["plain", 1], errors[key]) for key in grouped}
    words = [f"{name}: log error of plain minus its own {gap}" for name, gap in gaps.items()]
    better = any(gap.low > CLOSED for gap in gaps.values())
    return _verdict(all(gap.high < CLOSED for gap in gaps.values()), not better, "; ".join(words))


def state_and_length(results: pd.DataFrame) -> Verdict:
    """The GRU's error falls until its state has D numbers, and grows with the length."""
    of_gru = matching(results, model="GRU")
    here = of_gru & (matching(results, part=WHOLE) | matching(results, part="lengths"))
    (dims, lengths, states), best = least(results, ["intrinsic_dim", "length", "units"], here)
    if len(lengths) < 2:
        return NOT_TESTED
    words, grows, short = [], [], []
    for (i, dim), (k, units) in product(enumerate(dims), enumerate(states)):
        known = ~np.isnan(best[i, :, k])
        if known.sum() > 1 and units >= dim:
            errors = best[i, known, k]
            grows.append(bool((np.diff(errors) > 0).all()))
            listing = zip(lengths[known], errors, strict=True)
            said = ", ".join(f"T = {t:g}: {e:.1e}" for t, e in listing)
            words.append(f"state {units:g}, D = {dim:g}: {said}")
    for (i, dim), (j, length) in product(enumerate(dims), enumerate(lengths)):
        known = ~np.isnan(best[i, j])
        few, enough = best[i, j, known & (states < dim)], best[i, j, known & (states >= dim)]
        if len(few) and len(enough):
            short.append(bool(few.min() > 2 * enough.min()))
            words.append(
                f"D = {dim:g}, T = {length:g}: {few.min():.1e} below D, {enough.min():.1e} from D "
                "on"
            )
    if not grows or not short:
        return NOT_TESTED
    return Verdict.of(all(grows) and all(short), "; ".join(words))


def ceiling_and_floor(results: pd.DataFrame) -> Verdict:
    """With D units: the maximum is no worse than plain heads, and the mean is worse."""
    equal = results["units"].to_numpy() == results["intrinsic_dim"].to_numpy()
    here = matching(results, part=WHOLE) & equal
    (dims, lengths, models), best = least(results, ["intrinsic_dim", "length", "model"], here)
    names = [str(model) for model in models]
    if not {"plain", "max pooling", "mean pooling"} <= set(names):
        return NOT_TESTED
    three = best[..., [names.index(name) for name in ("plain", "max pooling", "mean pooling")]]
    places = np.argwhere(~np.isnan(three).any(axis=2))
    plain, largest, middle = three[places[:, 0], places[:, 1]].T
    words = [
        f"D = {dims[i]:g}, T = {lengths[j]:g}: plain {one:.1e}, max {most:.1e}, mean {mean:.1e}"
        for (i, j), one, most, mean in zip(places, plain, largest, middle, strict=True)
    ]
    holds = bool((largest <= 2 * plain).all() and (middle >= FALL * plain).all())
    return Verdict.of(holds, "; ".join(words)) if words else NOT_TESTED


def depth_is_needed(results: pd.DataFrame) -> Verdict:
    """Induction: no variant does it with one layer, and all but linear attention with two."""
    rows = results[results["part"] == "induction"]
    if rows.empty or "layers" not in rows:
        return NOT_TESTED
    best = rows.groupby(["model", "layers"])["error"].min().unstack()
    if best.empty or not {1, 2} <= set(best.columns):
        return NOT_TESTED
    sharp = best.drop(index="linear", errors="ignore")
    words = [f"{m}: {row[1]:.2f} → {row[2]:.2g}" for m, row in best.iterrows()]
    one, two = bool((best[1] > CLOSED).all()), bool((sharp[2] < SOLVED).all())
    numbers = "error with one and with two layers, " + ", ".join(words)
    possible = one and bool((sharp[2] < CLOSED * sharp[1]).all())  # falling, not yet there
    return _verdict(one and two, possible, numbers)


def steady_in_length(results: pd.DataFrame) -> Verdict:
    """The transition of plain heads is at D at every length, that of banded ones at D × bands."""
    whole = results[results["part"].isin([WHOLE, "lengths"])].assign(part=WHOLE)
    rows = transitions(whole, WHOLE, ("plain", f"banded:{BANDS}"))
    if rows.empty or rows.groupby("model")["length"].nunique().min() < 2:
        return NOT_TESTED
    right, possible, words = [], [], []
    for row in rows.itertuples():
        wanted = row.dim * (BANDS if row.model.startswith("banded") else 1)
        right.append(row.found.at == wanted and row.found.certain)
        possible.append(row.found.low <= wanted <= row.found.high)
        words.append(f"{row.model}, D = {row.dim}, T = {row.length}: at {row.found}")
    return _verdict(all(right), all(possible), "; ".join(words))


def finding(results: pd.DataFrame) -> Conclusion:
    """Which variants need as many heads as features?"""
    found = transitions(results, WHOLE)
    if found.empty:
        return Conclusion("No sweep over heads is finished.", None, "finishing the study")
    at_dim = found[[row.found.at == row.dim and row.found.certain for row in found.itertuples()]]
    whole = [
        model
        for model, rows in found.groupby("model")
        if len(rows) == (at_dim["model"] == model).sum()
    ]
    if "plain" not in whole:
        return Conclusion(
            "Inconclusive: plain heads do not show the transition at h = D.", None, "more steps"
        )
    others = sorted(set(found["model"]) - set(whole))
    return Conclusion(
        f"The error falls at D units in {len(whole)} of {len(whole) + len(others)} models: "
        f"{', '.join(sorted(whole))}. Not so: {', '.join(others) or 'none'}.",
        len(whole),
        answer="plain heads fall at D",
    )


def _verdict(right: bool, possible: bool, numbers: str) -> Verdict:
    if right:
        return Verdict("holds", numbers)
    return Verdict("cannot tell" if possible else "does not hold", numbers)


def _by_model(results: pd.DataFrame, part: str) -> dict[tuple[str, int], np.ndarray]:
    """Logarithms of the errors, seed by seed, by model and rank."""
    if "rank" not in results:
        return {}
    errors = results["error"].to_numpy(float)
    here = matching(results, part=part) & ~np.isnan(errors) & pd.notna(results["rank"].to_numpy())
    places = zip(*(results[name].to_numpy()[here] for name in ("model", "rank")), strict=True)
    found: dict[tuple[str, int], list[float]] = {}
    for (model, rank), error in zip(places, errors[here], strict=True):
        found.setdefault((str(model), int(rank)), []).append(error)
    return {place: np.log(found[place]) for place in sorted(found)}


def _difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """Of the logarithms of errors: every seed of both sees the same data."""
    count = min(len(first), len(second))
    return Interval.of(first[:count] - second[:count])


def _middle(logs: np.ndarray) -> str:
    return f"{np.exp(logs.mean()):.2g}"


def prediction(statement: str, reason: str, check: Check) -> Claim:
    """A claim of our own, made before the runs, with its reason."""
    return Claim(statement, f"predicted: {reason}", check)
