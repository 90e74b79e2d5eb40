"""What the allocation study's results say: differences to uniform, seed by seed."""

from collections.abc import Callable, Iterator
from math import isfinite

import pandas as pd

from headwise.core.intervals import Interval
from headwise.lab.study import NOT_TESTED, Conclusion, Verdict
from headwise.studies.differences import paired, pooled

UNIFORM, PAPERS, PLAN = "uniform", "early-heavy", "plan"
MARGIN = 0.02  # nats a byte: a smaller loss than this counts as none


def beats_uniform(name: str) -> Callable[[pd.DataFrame], Verdict]:
    """Its interval lies below zero in every arm; refuted where it lies above in any."""
    return lambda results: _against_uniform(results, name, 0.0)


def no_worse_than_uniform(name: str) -> Callable[[pd.DataFrame], Verdict]:
    """Its interval lies below the margin in every arm; refuted where it lies above zero in any."""
    return lambda results: _against_uniform(results, name, MARGIN)


def all_equal_to_uniform(results: pd.DataFrame) -> Verdict:
    """Two one-sided tests at 5 % each: in every arm the 90 % interval lies within the margin.

    Refuted where an interval lies beyond it whose level is corrected for the number of comparisons
    (Bonferroni): one of many is soon beyond by chance. "Not told apart" may be for want of seeds;
    this says that there is no difference that matters.
    """
    pairs = {
        f"{part} ({arm})": (rows, part)
        for arm, rows in _arms(results)
        for part in sorted(set(rows["part"]) - {UNIFORM})
        if paired(rows, part, UNIFORM) is not None
    }
    if not pairs:
        return NOT_TESTED

    def at(level: float) -> dict[str, Interval]:
        found = {name: paired(*pair, UNIFORM, level) for name, pair in pairs.items()}
        return {name: gap for name, gap in found.items() if gap is not None}

    gaps, strict = at(0.9), at(1 - 0.1 / len(pairs))
    widest = max(gaps, key=lambda name: abs(gaps[name].mean))
    beyond = [n for n, gap in strict.items() if gap.low > MARGIN or gap.high < -MARGIN]
    inside = [n for n, gap in gaps.items() if gap.low > -MARGIN and gap.high < MARGIN]
    numbers = (
        f"{len(inside)} of {len(gaps)} are equal to uniform within ±{MARGIN:g} nats a byte; "
        f"{len(beyond)} are not" + (f" ({', '.join(beyond)})" if beyond else "")
    ) + _over_texts(results)
    meaning = f"largest difference to uniform, {widest} (bar ±{MARGIN:g})"
    value = gaps[widest].mean
    if beyond or len(inside) == len(gaps):
        return Verdict.of(not beyond, numbers, value, meaning)
    return Verdict("cannot tell", numbers, value, meaning)


def _over_texts(results: pd.DataFrame) -> str:
    """For every schedule, over texts and seeds: told apart from uniform, or equal within what."""
    told, equal = [], []
    for part in sorted(set(results["part"]) - {UNIFORM}):
        gap = pooled(results, part, UNIFORM, "qk_norm")
        if gap is None or not isfinite(gap.high):
            continue
        if gap.sign != "not told apart":
            told.append(f"{part} {gap} {gap.sign}")
        else:
            equal.append(f"{part} within ±{max(-gap.low, gap.high):.3f}")
    found = ["equal, " + ", ".join(equal)] if equal else []
    found += ["told apart, " + ", ".join(told)] if told else []
    return f". Over texts and seeds: {'; '.join(found)}" if found else ""


def plan_is_as_good(results: pd.DataFrame) -> Verdict:
    """In no arm is there a schedule that the plan is worse than, by the interval of the pair."""
    worse, numbers, largest = [], [], []
    for arm, rows in _arms(results):
        if PLAN not in set(rows["part"]):
            continue
        gaps = {part: paired(rows, PLAN, part) for part in sorted(set(rows["part"]) - {PLAN})}
        found = {part: gap for part, gap in gaps.items() if gap is not None}
        if not found:
            continue
        hardest = max(found, key=lambda part: found[part].mean)
        numbers.append(f"{arm}: plan − {hardest} (the best other) {found[hardest]}")
        largest.append(found[hardest].mean)
        worse += [f"{part} ({arm})" for part, gap in found.items() if gap.sign == "worse"]
    if not numbers:
        return NOT_TESTED
    text = "; ".join(numbers) + (f". Worse than {', '.join(worse)}" if worse else "")
    return Verdict.of(not worse, text, max(largest), "plan minus the best other, at most")


def same_best_with_qk_norm(results: pd.DataFrame) -> Verdict:
    """On every text, the schedule of least mean loss is the same."""
    best: dict[str, dict[bool, str]] = {}
    for (text, qk_norm), rows in results.groupby(["text", "qk_norm"]):
        means = rows.groupby("part")["error"].mean()
        if means.notna().any():
            best.setdefault(str(text), {})[bool(qk_norm)] = str(means.idxmin())
    both = {text: names for text, names in best.items() if len(names) == 2}
    if not both:
        return NOT_TESTED
    numbers = "; ".join(f"{t}: {n[False]} without, {n[True]} with" for t, n in both.items())
    holds = all(names[False] == names[True] for names in both.values())
    return Verdict.of(holds, f"best by mean loss, {numbers}")


def losses(results: pd.DataFrame) -> pd.DataFrame:
    """Mean loss of every schedule in every arm, with its interval."""
    rows = []
    for (part, text, qk_norm), runs in results.groupby(["part", "text", "qk_norm"]):
        found = runs["error"].dropna().to_numpy(float)
        if len(found):
            rows.append(_point(str(part), str(text), bool(qk_norm), Interval.of(found)))
    return pd.DataFrame(rows)


def differences(results: pd.DataFrame) -> pd.DataFrame:
    """Every schedule's loss minus uniform's, seed by seed."""
    rows = []
    for (text, qk_norm), runs in results.groupby(["text", "qk_norm"]):
        for part in sorted(set(runs["part"]) - {UNIFORM}):
            gap = paired(runs, part, UNIFORM)
            if gap is not None:
                rows.append(_point(part, str(text), bool(qk_norm), gap))
    return pd.DataFrame(rows)


def finding(results: pd.DataFrame) -> Conclusion:
    """First what the paper recommends, and whether that paid; then what was best."""
    gaps = {arm: paired(rows, PAPERS, UNIFORM) for arm, rows in _arms(results)}
    found = {arm: gap for arm, gap in gaps.items() if gap is not None}
    if not found:
        return Conclusion("No pair of early-heavy and uniform is finished.", None, "finishing it")
    by_verdict = {
        verdict: [arm for arm, gap in found.items() if gap.sign == verdict]
        for verdict in ("worse", "better", "not told apart")
    }
    told = "; ".join(
        f"{_SAYS[verdict]} on {_joined(arms)}" for verdict, arms in by_verdict.items() if arms
    )
    numbers = "; ".join(f"{arm} {gap}" for arm, gap in found.items())
    best = "; ".join(
        f"{arm}: {rows.groupby('part')['error'].mean().idxmin()}" for arm, rows in _arms(results)
    )
    sentence = (
        f"The paper's recommendation, early-heavy, {told} (early-heavy minus uniform, nats a "
        f"byte: {numbers}; over texts and seeds {pooled(results, PAPERS, UNIFORM, 'qk_norm')}). "
        f"Best by mean loss: {best}."
    )
    decided = len(by_verdict["worse"]) + len(by_verdict["better"])
    if decided == 0:
        return Conclusion(sentence, None, "more seeds or a larger tier")
    return Conclusion(sentence, len(by_verdict["better"]), answer=told)


_SAYS = {
    "worse": "loses to uniform",
    "better": "beats uniform",
    "not told apart": "is not told apart from uniform",
}


def _against_uniform(results: pd.DataFrame, name: str, limit: float) -> Verdict:
    gaps = {arm: paired(rows, name, UNIFORM) for arm, rows in _arms(results)}
    found = {arm: gap for arm, gap in gaps.items() if gap is not None}
    if not found:
        return NOT_TESTED
    numbers = "; ".join(f"{arm}: {gap} {gap.sign}" for arm, gap in found.items())
    over_all = pooled(results, name, UNIFORM, "qk_norm")
    numbers = f"{name} − uniform, {numbers}; over texts and seeds {over_all}"
    mean = None if over_all is None else over_all.mean
    decided = mean, "mean difference to uniform, nats a byte"
    if any(gap.sign == "worse" for gap in found.values()):
        return Verdict("does not hold", numbers, *decided)
    shown = all(gap.high < limit for gap in found.values())  # false where there is one seed only
    return Verdict("holds" if shown else "cannot tell", numbers, *decided)


def _arms(results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Text by text, without and with QK-norm, what is finished."""
    columns = ["arm", "part", "seed", "error"]
    for arm, rows in results[columns].dropna(subset="error").groupby("arm"):
        yield str(arm), rows


def _point(part: str, text: str, qk_norm: bool, interval: Interval) -> dict[str, object]:
    return {
        "label": part,
        "panel": text,
        "group": "with QK-norm" if qk_norm else "without QK-norm",
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "seeds": interval.seeds,
    }


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
