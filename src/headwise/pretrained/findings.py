"""An inspection in words."""

from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtr  # scipy.stats takes a second to import

from headwise.pretrained.measure.importance import rank_correlation


def findings(
    heads: pd.DataFrame, errors: pd.DataFrame, head_dim: int, agreement: float | None = None
) -> list[str]:
    """What an engineer would want to be told first; `agreement` is that of measured importance."""
    return [
        *_sizes(heads, head_dim),
        _by_depth(heads, errors),
        _by_length(errors),
        _importance(heads),
        *_sureness(heads, agreement),
        _redundancy(heads),
    ]


def _sizes(heads: pd.DataFrame, head_dim: int) -> list[str]:
    """Runs of layers that need the same size, at 1 % and at 10 % output change."""
    sentences = []
    for column, limit in (("size_at_1pct", "1 %"), ("size_at_10pct", "10 %")):
        needed = heads.groupby("layer")[column].median().round().astype(int)
        runs: list[tuple[int, int, int]] = []
        for layer, size in needed.items():
            if runs and runs[-1][2] == size:
                runs[-1] = (runs[-1][0], int(str(layer)), int(size))
            else:
                runs.append((int(str(layer)), int(str(layer)), int(size)))
        for first, last, size in runs:
            name = f"layer {first}" if first == last else f"layers {first}–{last}"
            if size < head_dim:
                sentences.append(
                    f"{name} could use {size} of {head_dim} query–key dimensions (median head) at "
                    f"{limit} output change"
                )
    if not sentences:
        sentences.append(
            f"no layer's median head can give up query–key dimensions of its {head_dim} at 10 % "
            "output change"
        )
    return sentences


def _by_depth(heads: pd.DataFrame, errors: pd.DataFrame) -> str:
    """Do later layers saturate more? Rank correlation of depth with the error at a small size."""
    longest = errors[errors["length"] == errors["length"].max()]
    size = sorted(longest["size"].unique())[len(longest["size"].unique()) // 3]
    at_size = longest[longest["size"] == size]
    by_layer = at_size.groupby("layer")["change"].mean()
    if len(by_layer) < 3:
        return "with fewer than three layers, depth cannot be compared"
    if "stack" in heads:
        return f"layers of several stacks ({_stacks(heads)}): their numbers are no depths"
    rho = rank_correlation(at_size["layer"], at_size["change"])
    free = len(at_size) - 2
    student = rho * sqrt(free / max(1 - rho**2, 1e-300))
    p = float(2 * stdtr(free, -abs(student)))
    spread = ", ".join(f"{100 * value:.0f} %" for value in by_layer)
    if p < 0.05:
        answer = "later layers do saturate more" if rho < 0 else "later layers saturate less"
    else:
        answer = "later layers do not saturate more as a rule"
    return (
        f"{answer} in this model: cut to {size} query–key dimensions, heads' outputs change by "
        f"{spread} from the first layer to the last (rank correlation with depth {rho:+.2f}, "
        f"p = {p:.2g})"
    )


def _stacks(heads: pd.DataFrame) -> str:
    """Which layers belong to which stack."""
    layers = heads.drop_duplicates("layer").groupby("stack", sort=False)["layer"]
    return "; ".join(f"{name}: {', '.join(map(str, found))}" for name, found in layers)


def _by_length(errors: pd.DataFrame) -> str:
    size = sorted(errors["size"].unique())[len(errors["size"].unique()) // 3]
    by_length = errors[errors["size"] == size].groupby("length")["change"].mean()
    if len(by_length) < 2:
        return "one sequence length only: saturation with length was not measured"
    if not (by_length > 0).all():
        return f"at {size} dimensions the heads' outputs do not change: there is nothing to compare"
    slope = np.polyfit(np.log(by_length.index.to_numpy(float)), np.log(by_length), 1)[0]
    trend = "falls" if slope < -0.05 else "rises" if slope > 0.05 else "does not change"
    numbers = ", ".join(f"{100 * change:.1f} % at {length}" for length, change in by_length.items())
    return (
        f"the output error at {size} dimensions {trend} with sequence length "
        f"({numbers} tokens; exponent {slope:+.2f})"
    )


def _importance(heads: pd.DataFrame) -> str:
    column = "importance_measured" if "importance_measured" in heads else "importance"
    how = "measured" if column == "importance_measured" else "estimated by gradients"
    ranked = heads.sort_values(column)
    least, most = ranked.iloc[0], ranked.iloc[-1]
    total = float(ranked[column].clip(lower=0).sum())
    if len(heads) == 1 or not total > 0:
        named = "the one head" if len(heads) == 1 else "any head"
        return f"removing {named} raises the loss by {most[column]:.3g} at most: importance {how}"
    half = int((ranked[column].clip(lower=0)[::-1].cumsum() < total / 2).sum()) + 1
    return (
        f"{half} of {len(heads)} heads carry half of the importance ({how}); most: layer "
        f"{int(most['layer'])} head {int(most['head'])}, least: layer {int(least['layer'])} head "
        f"{int(least['head'])}"
    )


def _sureness(heads: pd.DataFrame, agreement: float | None) -> list[str]:
    """How far the order of measured importances, and of the estimates, can be trusted."""
    if agreement is None:
        return []
    said = rank_correlation(heads["importance"], heads["importance_measured"])
    return [
        "as much other text would rank the heads' measured importances like this one to about "
        f"{agreement:.2f} (rank correlation, from the text's halves); gradients alone rank them "
        f"like that to {said:.2f}"
    ]


def _redundancy(heads: pd.DataFrame) -> str:
    if heads.groupby("layer").size().max() == 1:
        return "every layer has one head: no two could write the same output"
    close = heads[heads["similarity"] > 0.9]
    if close.empty:
        return "no two heads of a layer write nearly the same output (cosine above 0.9)"
    names = sorted(
        {
            f"{int(row['layer'])}.{min(int(row['head']), int(row['most_similar_head']))}–"
            f"{max(int(row['head']), int(row['most_similar_head']))}"
            for _, row in close.iterrows()
        }
    )
    return f"heads that write nearly the same output (cosine above 0.9): {', '.join(names)}"
