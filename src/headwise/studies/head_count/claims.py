"""The head-count paper's claims, each a function of the result table."""

from functools import cache
from math import ceil

import numpy as np
import pandas as pd

from headwise.lab.study import NOT_TESTED, Conclusion, Verdict
from headwise.studies.cells import framed, least, matching
from headwise.studies.published import published_tables
from headwise.theory.head_count import reversal_score

DROP = 10.0  # a fall of the error by this factor at one head more is a sharp drop
PUBLISHED = {
    "transition": "head_count_table2.csv",
    "fixed-width": "head_count_table3.csv",
    "three-features": "head_count_table4.csv",
    "two-layers": "head_count_table5.csv",
}
PRINTED = (8.75e-6, 5.58e-5)  # Table 2 at h = 4, T = 64


def smallest(results: pd.DataFrame, part: str, **where: int) -> pd.DataFrame:
    """Smallest error over seeds: rows are heads, columns are lengths."""
    by = ["heads", "length"]
    return framed(least(results, by, matching(results, part=part, **where)), by)


@cache
def _table2() -> pd.DataFrame:
    return published_tables({"transition": PUBLISHED["transition"]})


@cache
def _printed() -> pd.DataFrame:
    """Table 2 as the claims have ours: rows are heads, columns are lengths."""
    return smallest(_table2(), "transition")


def finding(results: pd.DataFrame) -> Conclusion:
    """At which number of heads does the error fall, and at every length alike?"""
    errors = smallest(results, "transition")
    if errors.empty or errors.isna().to_numpy().any():
        return Conclusion(
            "Not all runs of the transition are finished.", None, "finishing the study"
        )
    steps = errors.index[1:]
    falls = errors.iloc[:-1].to_numpy() / errors.iloc[1:].to_numpy()  # (heads − 1, lengths)
    last_sharp = [steps[falls[:, k] >= DROP].max() for k in range(falls.shape[1])]
    places = {int(h) for h in last_sharp if not np.isnan(h)}
    if len(places) != 1 or any(np.isnan(h) for h in last_sharp):
        listing = ", ".join(
            f"T = {length}: {'none' if np.isnan(h) else int(h)}"
            for length, h in zip(errors.columns, last_sharp, strict=True)
        )
        return Conclusion(
            f"Inconclusive: a fall of the error by {DROP:.0f}× or more ends at different numbers "
            f"of heads ({listing}).",
            None,
            "more seeds and more steps (a larger tier)",
        )
    (dim,) = places
    at_drop = falls[list(steps).index(dim)]
    lengths = f"{len(errors.columns)} lengths" if len(errors.columns) > 1 else "the one length"
    return Conclusion(
        f"Error falls {at_drop.min():.0f}× or more from {dim - 1} to {dim} heads at every length "
        f"(T = {', '.join(map(str, errors.columns))}; {lengths}): intrinsic dimension {dim}.",
        dim,
    )


def _drop(results: pd.DataFrame, part: str, heads: int, **where: int) -> Verdict:
    errors = smallest(results, part, **where)
    if not {heads - 1, heads} <= set(errors.index):
        return NOT_TESTED
    errors = errors.loc[[heads - 1, heads]].dropna(axis=1)  # lengths at which both are finished
    if errors.empty:
        return NOT_TESTED
    before, after = errors.loc[heads - 1], errors.loc[heads]
    falls = (before / after).mask(before == after, 1.0)  # both may be zero
    numbers = ", ".join(f"T = {length}: {fall:.1f}×" for length, fall in falls.items())
    holds = bool((falls >= DROP).all())
    meaning = f"least fall of the smallest error from {heads - 1} to {heads} heads (bar {DROP:g}×)"
    theirs = None if where else _published_fall(part, heads)
    said = f"{heads - 1} → {heads} heads, {numbers}"
    return Verdict.of(holds, said, float(falls.min()), meaning, theirs)


@cache
def _published_fall(part: str, heads: int) -> float | None:
    if part not in PUBLISHED:
        return None
    errors = smallest(published_tables({part: PUBLISHED[part]}), part)
    return float((errors.loc[heads - 1] / errors.loc[heads]).min())


def drop_notes(ours: pd.DataFrame) -> pd.DataFrame:
    """For a figure: a line where L·h = D, and beside it how far the error falls there at least."""
    rows = []
    for (part, dim, layers), here in ours.groupby(["part", "intrinsic_dim", "layers"]):
        at = -(-int(dim) // int(layers))
        if at not in set(here["heads"]):
            continue
        name = "h = D" if layers == 1 else "L·h = D"
        rows.append({"part": part, "heads": at, "label": f"{name} = {dim:.0f}"})
        errors = here.pivot_table(index="heads", columns="length", values="error_min")
        if at - 1 not in errors.index:
            continue
        before, after = errors.loc[at - 1], errors.loc[at]
        fall = float((before / after).min())
        if fall >= DROP:
            height = float(np.exp(np.log([before.min(), after.max()]).mean()))
            note = {"label": f"÷ {fall:.0f}", "error_min": height}
            rows.append({"part": part, "heads": at, **note})
    return pd.DataFrame(rows, columns=["part", "heads", "label", "error_min"])


def drop_at_four(results: pd.DataFrame) -> Verdict:
    """Table 2: four directions."""
    return _drop(results, "transition", 4)


def drop_fixed_width(results: pd.DataFrame) -> Verdict:
    """Table 3: total width 32."""
    return _drop(results, "fixed-width", 4)


def drop_at_three(results: pd.DataFrame) -> Verdict:
    """Table 4: three directions."""
    return _drop(results, "three-features", 3)


def drop_two_layers(results: pd.DataFrame) -> Verdict:
    """Table 5: two layers of two heads."""
    return _drop(results, "two-layers", 2)


def drop_residual_norm(results: pd.DataFrame) -> Verdict:
    """With residual connection and layer norm."""
    return _drop(results, "residual-norm", 4)


def drop_other_dims(results: pd.DataFrame) -> Verdict:
    """Two, six and eight directions."""
    verdicts = {dim: _drop(results, "more-dims", dim, intrinsic_dim=dim) for dim in (2, 6, 8)}
    return _all_of({f"D = {dim}": verdict for dim, verdict in verdicts.items()})


def grows_below(results: pd.DataFrame) -> Verdict:
    """With fewer heads than directions."""
    return _reversal(results, below=True)


def reversed_above(results: pd.DataFrame) -> Verdict:
    """With at least as many heads as directions."""
    return _reversal(results, below=False)


def _reversal(results: pd.DataFrame, below: bool) -> Verdict:
    """The reversal score is 0 where errors only grow with the length; the paper's run from 4 up."""
    errors = smallest(results, "transition")
    if errors.shape[1] < 3:
        return NOT_TESTED
    scores = {
        int(heads): reversal_score(row.to_dict())
        for heads, row in errors.dropna().iterrows()
        if (int(heads) < 4) == below
    }
    if not scores:
        return NOT_TESTED
    holds = all(score < 0.3 if below else score > 1 for score in scores.values())
    if below:  # errors that are all the same are not reversed, but neither do they grow
        holds = holds and bool(
            (errors.loc[[*scores]].iloc[:, -1] > errors.loc[[*scores]].min(axis=1)).all()
        )
    numbers = ", ".join(f"h = {heads}: {score:.2f}" for heads, score in scores.items())
    theirs = _printed()
    known = [heads for heads in scores if heads in theirs.index]
    beside = ", ".join(f"{reversal_score(theirs.loc[h].to_dict()):.2f}" for h in known)
    bar, hardest = ("below 0.3", max) if below else ("above 1", min)
    said = f"reversal score ({bar}): {numbers}; published: {beside}"
    meaning = f"reversal score where it is nearest to failing (bar: {bar})"
    return Verdict.of(holds, said, float(hardest(scores.values())), meaning)


def small_at_four(results: pd.DataFrame) -> Verdict:
    """At every length."""
    errors = smallest(results, "transition")
    if 4 not in errors.index:
        return NOT_TESTED
    worst = float(errors.loc[4].max())
    numbers = ", ".join(f"T = {length}: {error:.1e}" for length, error in errors.loc[4].items())
    meaning = "largest of the smallest errors with 4 heads (bar 1.2e-5)"
    theirs = float(_printed().loc[4].max())
    return Verdict.of(worst <= 1.2e-5, numbers, worst, meaning, theirs)


def table_2_is_the_minimum(results: pd.DataFrame) -> Verdict:
    """Is Table 2 nearer to our minimum or to our mean, by the factor, over all its cells?

    Its caption says mean ± standard deviation, its text minimum: see `seeds_for_deviation`.
    """
    part = results[results["part"] == "transition"]
    by = part.dropna(subset="error").groupby(["heads", "length"])["error"]
    theirs = _table2().set_index(["heads", "length"])["error"]
    shared = theirs.index.intersection(by.min().index)
    if len(shared) == 0:
        return NOT_TESTED
    least, mean = (np.log(each[shared] / theirs[shared]) for each in (by.min(), by.mean()))
    seeds = seeds_for_deviation(*PRINTED)
    nearer = float(least.abs().mean() - mean.abs().mean())
    return Verdict.of(
        nearer < 0,
        f"ours over theirs, geometric mean over {len(shared)} cells: minimum "
        f"{np.exp(least.mean()):.2f}×, mean {np.exp(mean.mean()):.2f}×; mean factor apart: minimum "
        f"{np.exp(least.abs().mean()):.2f}, mean {np.exp(mean.abs().mean()):.2f}. Printed at "
        f"h = 4, T = 64: {PRINTED[0]:.2e} ± {PRINTED[1]:.2e}, which takes {seeds} seeds or more if "
        "the first number is their mean",
        float(np.exp(nearer)),
        "factor apart of our minimum over that of our mean (below 1: it is the minimum)",
    )


def seeds_for_deviation(mean: float, deviation: float) -> int:
    """How many non-negative numbers it takes at least to have this mean and standard deviation.

    Σx² ≤ (Σx)² = n²m² for x ≥ 0, so (n − 1)s² = Σx² − n m² ≤ n(n − 1)m², and s ≤ √n·m.
    """
    return ceil((deviation / mean) ** 2)


def slow_in_width(results: pd.DataFrame) -> Verdict:
    """Correlation of −log error with log width, and order of lengths, for h < D."""
    part = results[(results["part"] == "width") & (results["heads"] < 4)]
    if part.empty:
        return NOT_TESTED
    best = part.groupby(["heads", "length", "width"])["error"].min().reset_index()
    correlations = {
        (int(heads), int(length)): np.corrcoef(np.log(rows["width"]), -np.log(rows["error"]))[0, 1]
        for (heads, length), rows in best.groupby(["heads", "length"])
        if len(rows) > 2  # two points always lie on a line
    }
    if not correlations:
        return NOT_TESTED
    means = best.groupby(["heads", "length"])["error"].apply(lambda e: np.log(e).mean()).unstack()
    ordered = bool((means.diff(axis=1).iloc[:, 1:] > 0).to_numpy().all())
    least = float(min(correlations.values()))
    holds = ordered and least > 0.8
    numbers = ", ".join(f"h = {h}, T = {t}: {c:.2f}" for (h, t), c in correlations.items())
    order = "longer is worse" if ordered else "longer is not always worse"
    said = f"{order}; correlation: {numbers}"
    return Verdict.of(holds, said, least, "least correlation (bar 0.8)")


def draw_matters(results: pd.DataFrame) -> Verdict:
    """Random directions against orthonormal ones, at the lengths of both."""
    ours, orthonormal = smallest(results, "transition"), smallest(results, "orthonormal")
    both = [errors.reindex([3, 4]).dropna(axis=1) for errors in (ours, orthonormal)]
    shared = both[0].columns.intersection(both[1].columns)
    if shared.empty:
        return NOT_TESTED
    drops = [errors.loc[3, shared] / errors.loc[4, shared] for errors in both]
    gain = float((drops[1] / drops[0]).min())
    numbers = ", ".join(
        f"T = {length}: {drops[0][length]:.0f}× random, {drops[1][length]:.0f}× orthonormal"
        for length in shared
    )
    meaning = "least drop of orthonormal directions over that of random ones (bar 1)"
    return Verdict.of(gain > 1, numbers, gain, meaning)


def draws_span_published(results: pd.DataFrame) -> Verdict:
    """Table 2 gives 9.1e-4 at h = 3, T = 32, for directions that the paper does not state."""
    part = results[(results["part"] == "draws") & (results["heads"] == 3)]
    if part.empty:
        return NOT_TESTED
    published = float(_printed().loc[3, 32])
    best = part.groupby("overlap")["error"].min().sort_values()
    holds = bool(best.iloc[0] <= published <= best.iloc[-1])
    return Verdict.of(
        holds,
        f"smallest errors at h = 3, T = 32 over {len(best)} draws: {best.iloc[0]:.1e} (overlap "
        f"{best.index[0]:.2f}) to {best.iloc[-1]:.1e} (overlap {best.index[-1]:.2f})",
        float(best.iloc[0]),
        "smallest error of the best draw",
        published,
    )


def _all_of(verdicts: dict[str, Verdict]) -> Verdict:
    tested = {name: v for name, v in verdicts.items() if v.status != "not tested"}
    if not tested:
        return NOT_TESTED
    holds = all(verdict.status == "holds" for verdict in tested.values())
    numbers = "; ".join(f"{name}: {verdict.numbers}" for name, verdict in tested.items())
    least = min(v.value for v in tested.values() if v.value is not None)
    return Verdict.of(holds, numbers, least, f"least fall at h = D (bar {DROP:g}×)")
