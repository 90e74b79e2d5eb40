"""What the study of rank-1 heads says: claims on trained, random and voting layers."""

from functools import cache

import pandas as pd

from headwise.lab.study import NOT_TESTED, Conclusion, Verdict
from headwise.studies.rank import shared
from headwise.theory.rank import error_lower_bound

HIGHEST_DEGREE = 9_999
NEAR = 1.1  # a trained layer within this factor of the lower bound is close to it


def published() -> pd.DataFrame:
    """Read off the authors' sweeps."""
    return shared.read_offs(
        {"random-features": "rank_random_features.csv", "trained": "rank_trained.csv"}
    )


@cache
def bound(dim: int, heads: int, values: str = "scalar") -> float:
    """The lower bound for rank 1; 0 where it says nothing."""
    found = error_lower_bound(dim, 1, heads, values, highest_degree=HIGHEST_DEGREE)  # type: ignore[arg-type]
    return found.value or 0.0


def references(ours: pd.DataFrame) -> pd.DataFrame:
    """The lower bound at our numbers of heads, and the published read-offs, for our dimensions."""
    rows = []
    for dim in sorted(set(ours["dim"])):
        for heads in sorted(set(ours[ours["dim"] == dim]["heads"])):
            for values, label in (("scalar", "values a·I"), ("general", "any values")):
                error = bound(int(dim), int(heads), values)
                rows.append((dim, heads, f"lower bound, {label}", error))
    theirs = published()
    for row in theirs[theirs["dim"].isin(set(ours["dim"]))].to_dict("records"):
        kind = "random features" if row["part"] == "random-features" else "trained"
        rows.append((row["dim"], row["heads"], f"published, {kind}", row["error"]))
    frame = pd.DataFrame(rows, columns=["dim", "heads", "label", "error_min"])
    return frame[frame["error_min"] > 0]


def one_layer_bound(ours: pd.DataFrame) -> pd.DataFrame:
    """What one layer of as many heads cannot go below, beside two layers."""
    rows = [
        (dim, heads, "one layer's lower bound, values a·I", bound(int(dim), int(heads)))
        for dim, heads in sorted(set(zip(ours["dim"], ours["heads"], strict=True)))
    ]
    frame = pd.DataFrame(rows, columns=["dim", "heads", "label", "error_min"])
    return frame[frame["error_min"] > 0]


def never_below_the_bound(results: pd.DataFrame) -> Verdict:
    """Every one-layer result of rank 1, against a bound that says something, up to noise."""
    one = results[(results["layers"] == 1) & (results["rank"] == 1)].dropna(subset="error")
    if one.empty:
        return NOT_TESTED
    margins = []
    for row in one.to_dict("records"):
        values = "general" if row["part"] == "trained-general" else "scalar"
        least = bound(int(row["dim"]), int(row["heads"]), values)
        if least > 0:
            margins.append((row["error"] - least, row["dim"], row["heads"], row["part"], least))
    if not margins:
        return NOT_TESTED
    margin, dim, heads, part, least = min(margins)
    return Verdict.of(
        margin > -0.005,
        f"closest: {part}, d = {dim}, H = {heads}: {least + margin:.4f} against {least:.4f}; "
        "measuring is good to 0.005",
    )


def near_the_bound(results: pd.DataFrame) -> Verdict:
    """Trained layers of H = d heads come close to the bound."""
    trained = results[(results["part"] == "trained") & (results["heads"] == results["dim"])]
    errors = shared.smallest(trained, ["dim"])
    if errors.empty:
        return NOT_TESTED
    ratios = {dim: error / bound(int(dim), int(dim)) for dim, error in errors.items()}
    numbers = "; ".join(
        f"d = H = {dim}: {errors[dim]:.4f}, {ratio:.3f}× the bound" for dim, ratio in ratios.items()
    )
    worst = max(ratios.values())
    meaning = f"largest error at H = d over the bound (bar {NEAR:g}×)"
    return Verdict.of(worst <= NEAR, numbers, worst, meaning)


def closed_form_is_right(results: pd.DataFrame) -> Verdict:
    """The measured error of a built layer is the formula's, up to five standard errors."""
    built = results[results["part"].isin(["random-features", "independent", "uniform-angle"])]
    if built.empty:
        return NOT_TESTED
    gaps = (built["error"] - built["expected"]).abs() / built["standard_error"]
    return Verdict.of(
        bool(gaps.max() <= 5),
        f"{len(built)} layers; the largest gap is {gaps.max():.1f} standard errors",
    )


def published_is_a_slip(results: pd.DataFrame) -> Verdict:
    """The authors' formula at d = 8, with and without their keys' slip, and what is measured."""
    at_eight = results[results["dim"] == 8].sort_values("heads")
    parts = {part: at_eight[at_eight["part"] == part] for part in ("published", "uniform-angle")}
    if any(rows.empty for rows in parts.values()):
        return NOT_TESTED
    slip, right = (rows.iloc[-1] for rows in parts.values())
    theirs, at_heads = _published_at_eight()
    said = float(slip["expected"])
    if int(slip["heads"]) != at_heads:  # fewer heads have a larger error, whatever the keys
        return Verdict(
            "not tested",
            f"the published {theirs:.2f} is of H = {at_heads}; here H = {slip['heads']} at most, "
            f"where the formula says {said:.4f} with keys that are too short and "
            f"{right['expected']:.4f} with keys of length one",
        )
    holds = (
        said < float(right["expected"]) - 0.01
        and float(slip["error"]) - said > 5 * float(slip["standard_error"])
        and abs(said - theirs) <= 0.01
    )
    return Verdict.of(
        holds,
        f"H = {slip['heads']}: the formula with keys that are too short says {said:.4f}, and the "
        f"layer of those weights measures {slip['error']:.4f}; with keys of length one the formula "
        f"says {right['expected']:.4f} and the layer measures {right['error']:.4f}; published "
        f"{theirs:.2f} at H = {at_heads}",
        said,
        "what the formula says with the slip (bar: within 0.01 of the published number)",
        theirs,
    )


def _published_at_eight() -> tuple[float, int]:
    """The authors' error of random features at d = 8, and with how many heads."""
    row = published().query("part == 'random-features' and dim == 8").iloc[0]
    return float(row["error"]), int(row["heads"])


def nearly_full_rank_is_exact(results: pd.DataFrame) -> Verdict:
    """d + 1 heads of rank d − 1, d even, make no error."""
    built = results[results["part"] == "nearly-full"]
    if built.empty:
        return NOT_TESTED
    worst = float(built["error"].max())
    numbers = ", ".join(
        f"d = {row.dim}, rank {row.rank}: {row.error:.2g}" for row in built.itertuples()
    )
    return Verdict.of(worst < 1e-12, numbers, worst, "largest measured error (bar 1e-12)")


def depth_beats_the_bound(results: pd.DataFrame) -> Verdict:
    """Two layers of rank-1 heads go below what one layer of as many heads can reach."""
    votes = shared.smallest(results[results["part"] == "vote"], ["dim", "heads"])
    below = {
        (dim, heads): (error, least)
        for (dim, heads), error in votes.items()
        if error < (least := bound(int(dim), int(heads)))
    }
    if votes.empty:
        return NOT_TESTED
    numbers = ", ".join(
        f"d = {dim}, H = {heads}: {error:.3f} against {least:.3f}"
        for (dim, heads), (error, least) in below.items()
    )
    return Verdict.of(bool(below), numbers or "no vote went below it")


def finding(results: pd.DataFrame) -> Conclusion:
    """Is a trained layer where the lower bound says, and are random heads?"""
    verdict = near_the_bound(results)
    if verdict.status == "holds":
        return Conclusion(
            f"Trained heads do: with H = d they are stuck where the bound says ({verdict.numbers})."
            f"{_random_heads(results)}",
            1,
            answer="trained heads do",
        )
    said = verdict.numbers or "no trained layer of d heads is finished"
    return Conclusion(f"Inconclusive: {said}.", None, "finishing the study, or a larger tier")


def _random_heads(results: pd.DataFrame) -> str:
    """How far random heads stay above the bound for as many, where there are most of them."""
    errors = shared.smallest(results[results["part"] == "random-features"], ["dim", "heads"])
    if errors.empty:
        return ""
    most = int(errors.index.get_level_values("heads").max())
    ratios = [
        error / least
        for (dim, heads), error in errors.items()
        if heads == most and (least := bound(int(dim), int(heads)))
    ]
    if not ratios:
        return ""
    return f" Random heads do not: {most} of them are {min(ratios):.1f}× above it or more."
