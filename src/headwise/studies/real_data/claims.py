"""What the studies on real data claim, each a function of the result table."""

from collections.abc import Callable

import pandas as pd

from headwise.core.intervals import Interval
from headwise.lab.study import NOT_TESTED, Conclusion, Verdict
from headwise.studies.real_data.arms import FIXED_HEADS, FIXED_WIDTH, GROWING
from headwise.studies.real_data.effects import (
    HELD_OUT,
    Effect,
    by_length,
    effect,
    effects_of_heads,
    in_points,
    slope,
)
from headwise.studies.real_data.fit import fit_decay

PUBLISHED_ALPHA, PUBLISHED_DELTA = -1.40, 0.25
LEFT_OUT = (1, 12, 14, 16)  # heads without which the paper fitted its formula
NEGLIGIBLE = 0.1  # of the effect of width: heads that do less than that do not matter

COMPARABLE = 0.25  # heads and width both count where neither does less than that of the other


def rises_with_heads(results: pd.DataFrame) -> Verdict:
    """Accuracy gained with every doubling of the heads, width growing with them."""
    found = slope(results, GROWING)
    numbers = "; ".join(f"T = {length}: {in_points(gain)}" for length, gain in found.items())
    return _sign(list(found.values()), f"a doubling of the heads gives, {numbers}")


def falls_with_length(results: pd.DataFrame) -> Verdict:
    """Accuracy lost with every doubling of T, mean over heads."""
    found = by_length(results)
    if found is None:
        return NOT_TESTED
    lost = Interval(-found.mean, -found.high, -found.low, found.seeds)
    return _sign([lost], f"a doubling of T gives {in_points(found)}, mean over heads")


def follows_the_formula(results: pd.DataFrame) -> Verdict:
    """α and δ of the fitted formula against the published ones."""
    mine = results[(results["part"] == GROWING) & results["error"].notna()]
    half = 0.5 / mine["train_examples"]  # no error among N examples: fewer than one in 2N, say
    found = fit_decay(mine.assign(error=mine["error"].clip(lower=half)))
    if found is None:
        return NOT_TESTED
    numbers = f"{found}; published α = {PUBLISHED_ALPHA}, δ = {PUBLISHED_DELTA}"
    if not found.identified:
        return Verdict("cannot tell", f"{numbers}; δ is not identified: other δ fit as well")
    inside = (
        found.alpha_range[0] <= PUBLISHED_ALPHA <= found.alpha_range[1]
        and found.delta_range[0] <= PUBLISHED_DELTA <= found.delta_range[1]
    )
    return Verdict.of(inside, numbers)


def no_transition_held_out(results: pd.DataFrame) -> Verdict:
    """Held-out accuracy gains less than half of what training accuracy gains."""
    seen, unseen = effect(results, GROWING), effect(results, GROWING, HELD_OUT)
    if seen is None or unseen is None:
        return NOT_TESTED
    numbers = f"training {in_points(seen.interval)}, held out {in_points(unseen.interval)}"
    gap = Interval.of((seen.by_seed / 2 - unseen.by_seed).to_numpy(float))
    numbers = f"{seen.change}: {numbers}"
    return _sign([gap], numbers)


def mrr_alike(results: pd.DataFrame) -> Verdict:
    """Over the networks of all arms, training MRR orders them as training accuracy does."""
    means = results.groupby(["part", "length", "heads", "total_width"])[
        ["train_accuracy", "train_mrr"]
    ].mean()
    if len(means.dropna()) < 3:
        return NOT_TESTED
    agreement = float(means.corr(method="spearman").iloc[0, 1])
    return Verdict.of(agreement > 0.95, f"rank correlation {agreement:.3f} over {len(means)} cells")


def heads_matter(results: pd.DataFrame) -> Verdict:
    """At fixed width and parameters, some number of heads differs from one head.

    It does not hold where all differences are shown to be small beside the effect of width.
    """
    found, width = effects_of_heads(results), effect(results, FIXED_HEADS)
    if not found:
        return NOT_TESTED
    numbers = "; ".join(f"{heads} heads − 1: {in_points(gap)}" for heads, gap in found.items())
    if width is not None:
        numbers += f". Beside it, {width}"
    if any(gap.low > 0 or gap.high < 0 for gap in found.values()):
        return Verdict("holds", numbers)
    margin = NEGLIGIBLE * width.interval.mean if width is not None else 0.0
    small = all(-margin < gap.low and gap.high < margin for gap in found.values())
    return Verdict("does not hold" if small else "cannot tell", numbers)


def width_matters(results: pd.DataFrame) -> Verdict:
    """With a fixed number of heads, more width raises training accuracy."""
    found = slope(results, FIXED_HEADS)
    numbers = "; ".join(f"T = {length}: {in_points(gain)}" for length, gain in found.items())
    return _sign(list(found.values()), f"a doubling of the width gives, {numbers}")


def finding(first: str, larger: str) -> Callable[[pd.DataFrame], Conclusion]:
    """Heads or width? `first` says what the data are; `larger` what would settle it."""

    def conclude(results: pd.DataFrame) -> Conclusion:
        both, heads, width = (effect(results, arm) for arm in (GROWING, FIXED_WIDTH, FIXED_HEADS))
        told = _data_of(results, first)
        if heads is None or width is None or both is None or not _alike(both, heads, width):
            return Conclusion(f"Not all arms are finished. {told}", None, "finishing the study")
        more = Interval.of((width.by_seed - heads.by_seed).dropna().to_numpy(float))
        numbers = (
            f"training accuracy changes by: {width}; {heads}; {both}; "
            f"width minus heads {in_points(more)}"
        )
        share = heads.interval.mean / width.interval.mean if width.interval.mean else 0.0
        said = (
            f"at fixed width, heads give {round(100 * share)} % of what width gives at a fixed "
            f"number of heads; {numbers}. {told}"
        )
        matter = heads.interval.low > 0 and width.interval.low > 0
        if matter and COMPARABLE <= share <= 1 / COMPARABLE:
            return Conclusion(f"Both heads and width: {said}", 2)
        if more.low > 0 and width.interval.low > 0:
            return Conclusion(f"Width, more than heads: {said}", 0)
        if more.high < 0 and heads.interval.low > 0:
            return Conclusion(f"Heads, more than width: {numbers}. {told}", 1)
        return Conclusion(
            f"This tier cannot tell heads from width: {numbers}. {told}", None, larger
        )

    return conclude


def _alike(*found: Effect) -> bool:
    """Was everything multiplied by the same factor, at the same lengths, from one to the other?

    Where runs are missing it was not, and effects of unlike changes are not compared.
    """
    return len({(each.greatest / each.least, each.lengths) for each in found}) == 1


def _data_of(results: pd.DataFrame, first: str) -> str:
    names = ", ".join(sorted(set(results["data"]))) if "data" in results else ""
    return first.format(data=names)


def _sign(gains: list[Interval], numbers: str) -> Verdict:
    """Holds if all intervals lie above zero; does not if one lies below."""
    if not gains:
        return NOT_TESTED
    if any(gain.high < 0 for gain in gains):
        return Verdict("does not hold", numbers)
    return Verdict("holds" if all(gain.low > 0 for gain in gains) else "cannot tell", numbers)
