"""What the studies of the rank paper (arXiv 2407.16153) have in common."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Figure, Verdict
from headwise.nets.encoder import EncoderShape
from headwise.studies.published import published_tables
from headwise.tasks.neighbours import Neighbours
from headwise.training import Streaming

Check = Callable[[pd.DataFrame], Verdict]

PAPER = "Quality over Quantity in Attention Layers, ICLR 2025, arXiv 2407.16153"
SETTING = ("dim", "points", "positions", "layers", "modules", "power", "rank", "rank_share")
WORTH_A_NOTE = 1.5  # times apart; a smaller difference is not written into a figure
FALL = 5.0  # full rank must be this many times below half rank
TOLERANCE = 0.02  # a rise of the error by this share is none
HELPS = 1.25  # a change of the error by this factor counts
LEARNT = 0.9  # a network with a smaller error has learnt; points have length 1: a constant leaves 1
UNFINISHED = "half and full rank are not finished, or full rank has learnt nothing,"

NOTES = (
    "Every batch is fresh: no sequence is ever seen twice, and validation sequences are none of "
    "the training's. The authors' data restart every epoch, so that their read-offs are errors on "
    "25,600 fixed sequences.",
    "Every seed has its own initial weights and its own stream of data.",
    "Encoder: post-norm, ReLU, no dropout; a token is scaled to length one and multiplied by a "
    "learned number; a layer averages w modules of width/rank heads each. AdamW, betas (.9, .95), "
    "no weight decay, 5 % warm-up, cosine to zero.",
)


def encoder_runs(
    tasks: Iterable[Neighbours],
    ranks: Iterable[float],
    layers: Iterable[int],
    modules: Iterable[int],
    training: Streaming,
    seeds: int,
    ffn: int,
) -> list[Run]:
    """Encoders of every rank (below 1: a share of the points' dimension) on every task."""
    runs = []
    for task, rank, depth, width in product(tasks, ranks, layers, modules):
        net = EncoderShape.paper(
            token_dim=task.token_dim,
            outputs=task.dim,
            rank=int(rank if rank > 1 or isinstance(rank, int) else rank * task.dim),
            layers=depth,
            modules=width,
            ffn=ffn,
        )
        runs += [
            Run(kind="tokens", task=task, net=net, training=training, seed=seed)
            for seed in range(seeds)
        ]
    return runs


def farthest(dim: int, points: int, positions: str = "none") -> Neighbours:
    """The paper's task: every point is asked for the one farthest from it."""
    return Neighbours(
        dim=dim,
        points=points,
        target="farthest",
        form="self",
        positions=positions,  # type: ignore[arg-type]
        position_dim=max(dim, points) if positions == "concatenated" else 0,
    )


def read_offs(parts: dict[str, str]) -> pd.DataFrame:
    """Published numbers with the columns that our tables have."""
    frame = published_tables(parts)
    if "rank" in frame:
        frame["rank_share"] = frame["rank"] / frame["dim"]
    if "modules" in frame:
        frame["power"] = (2 + np.log(frame["modules"]) / np.log(frame["dim"])).round(2)
    return frame


def smallest(results: pd.DataFrame, by: list[str], **where: object) -> pd.Series:
    """The smallest error over seeds for each value of the columns `by`."""
    chosen = results
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return chosen.groupby(by)["error"].min().dropna()


def full_rank_wins(results: pd.DataFrame) -> Verdict:
    """With one layer and equal parameters, full rank is at least 5× below half rank."""
    ratios = half_over_full(results)
    if ratios.empty:
        return NOT_TESTED
    numbers = ", ".join(f"{_describe(key)}: {ratio:.1f}×" for key, ratio in ratios.items())
    meaning = f"least error at half rank over that at full rank (bar {FALL:g}×)"
    said = f"half rank over full rank, {numbers}"
    return Verdict.of(bool((ratios >= FALL).all()), said, float(ratios.min()), meaning)


def half_over_full(results: pd.DataFrame) -> pd.Series:
    """Error at half rank over error at full rank, one layer, by (dim, points, modules).

    Where not even full rank has learnt, two errors of guessing would say that rank costs nothing.
    """
    errors = smallest(results, ["dim", "points", "modules", "rank_share"], layers=1).unstack()
    errors = errors.reindex(columns=[0.5, 1.0])  # a table without both has no ratio, but its levels
    return (errors[0.5] / errors[1.0].where(errors[1.0] < LEARNT)).dropna()


def falls_with_rank(results: pd.DataFrame) -> Verdict:
    """With one layer, from rank to the next larger rank, the error does not grow."""
    errors = smallest(results, ["dim", "points", "modules", "rank"], layers=1)
    curves = {
        key: rows.droplevel([0, 1, 2])
        for key, rows in errors.groupby(level=[0, 1, 2])
        if len(rows) > 1
    }
    if not curves:
        return NOT_TESTED
    steps = [(curve / curve.shift()).max() for curve in curves.values()]
    holds = all(step <= 1 + TOLERANCE for step in steps)
    numbers = "; ".join(
        f"{_describe(key)}: "
        + ", ".join(f"r = {rank} {error:.3g}" for rank, error in curve.items())
        for key, curve in curves.items()
    )
    meaning = f"largest error over that of the next smaller rank (bar {1 + TOLERANCE:g}×)"
    return Verdict.of(holds, numbers, float(max(steps)), meaning)


def heads_do_not_buy_it_back(results: pd.DataFrame) -> Verdict:
    """Low-rank heads with the most parameters, against full rank with the fewest."""
    one = results[results["layers"] == 1]
    fewest, most = one["modules"].min(), one["modules"].max()
    full = smallest(one, ["dim", "points"], rank_share=1.0, modules=fewest)
    low = smallest(one[one["rank_share"] < 1], ["dim", "points"], modules=most)
    shared = full.index.intersection(low.index)
    if fewest == most or shared.empty:
        return NOT_TESTED
    numbers = "; ".join(
        f"d = {dim}, N = {points}: below full rank {low[dim, points]:.3g} with w = {most}, "
        f"full rank {full[dim, points]:.3g} with w = {fewest}"
        for dim, points in shared
    )
    least = float((low[shared] / full[shared]).min())
    meaning = f"low rank with the most heads over full rank with the fewest (bar {HELPS:g}×)"
    return Verdict.of(least > HELPS, numbers, least, meaning)


def depth_gains(results: pd.DataFrame) -> pd.DataFrame:
    """Error of one layer over that of the deepest, for ranks below full: rows N, columns rank."""
    low = results[results["rank_share"] < 1]
    deepest = low["layers"].max()
    errors = smallest(low, ["points", "rank", "layers"]).unstack()
    if 1 not in errors.columns or deepest == 1:
        return pd.DataFrame()
    return (errors[1] / errors[deepest]).unstack().dropna(how="all")


def depth_helps_at_small_n(results: pd.DataFrame) -> Verdict:
    """Layers reduce the low-rank error with the fewest points, and not with the most."""
    gains = depth_gains(results)
    if len(gains) < 2:
        return NOT_TESTED
    best = gains.max(axis=1)
    few, many = float(best.iloc[0]), float(best.iloc[-1])
    numbers = ", ".join(f"N = {points}: {gain:.2f}×" for points, gain in best.items())
    return Verdict.of(
        few >= HELPS > many,
        f"error of one layer over that of the deepest, at best: {numbers}",
        few,
        f"the same with the fewest points (bar {HELPS:g}×, and less with the most)",
    )


def rank_finding(results: pd.DataFrame) -> Conclusion:
    """What splitting the width costs, in a sentence."""
    ratios = half_over_full(results)
    if ratios.empty:
        return Conclusion(
            f"Inconclusive: {UNFINISHED} everywhere.", None, "finishing the study, or more steps"
        )
    worst, sentence = float(ratios.min()), "; ".join(_describe(key) for key in ratios.index)
    if worst < FALL:
        return Conclusion(
            f"Inconclusive: with one layer and equal parameters, half rank is {_against(worst)} "
            f"full rank where it is least ({sentence}); {FALL:.0f}× above would settle it.",
            None,
            "more steps (a larger tier)",
        )
    return Conclusion(
        f"At equal parameters and one layer, splitting full rank in two costs {worst:.1f}× the "
        f"error or more ({sentence}).",
        round(worst),
        answer="it costs",
    )


def price_finding(
    results: pd.DataFrame, column: str, symbol: str, grows: str, falls: str, same: str
) -> Conclusion:
    """How the price of half the rank goes with a column, in the words given for each case."""
    prices = half_over_full(results[results["layers"] == 1])
    found = prices.groupby(level=column).min() if len(prices) else prices
    if len(found) < 2:
        return Conclusion(
            f"Inconclusive: {UNFINISHED} at two values of {symbol} or more.",
            None,
            "finishing the study, or more steps",
        )
    listed = ", ".join(f"{symbol} = {value}: {ratio:.1f}×" for value, ratio in found.items())
    first, last = float(found.iloc[0]), float(found.iloc[-1])
    answer = same
    if float(found.max()) < HELPS:
        answer = "No: half the rank costs nothing here"
    elif max(first, last) >= HELPS * min(first, last):
        answer = grows if last > first else falls
    where = f"error at half rank over full rank, one layer, {listed}"
    return Conclusion(f"{answer} ({where}).", round(last), answer=answer)


def _against(ratio: float) -> str:
    """How an error stands to another: a ratio below one is said as how far it is below."""
    return f"{ratio:.1f}× above" if ratio >= 1 or not ratio else f"{1 / ratio:.1f}× below"


def _describe(key: tuple[int, int, int]) -> str:
    dim, points, modules = key
    return f"d = {dim}, N = {points}, w = {modules}"


def full_rank_claim(source: str, varied: str, check: Check = full_rank_wins) -> Claim:
    """Full rank is at least 5× below half rank, of one layer at equal parameters."""
    statement = f"With one layer, full rank is at least 5× below half rank, {varied}"
    return Claim(statement, source, check)


def beside(check: Check, published: Callable[[], pd.DataFrame]) -> Check:
    """The claim with the number that the published errors give for it."""
    theirs = cache(lambda: check(published()).value)
    return lambda results: replace(check(results), published=theirs())


def falling_claim(source: str) -> Claim:
    """The error falls with the rank, of one layer."""
    return Claim("With one layer, the error falls with the rank", source, falls_with_rank)


def rank_figure(
    name: str,
    title: str,
    caption: str,
    panel: str,
    colour: str,
    facet: str | None = None,
    references: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Figure:
    """The error against rank / dimension, of the study's one part."""
    return Figure(
        name=name,
        title=title,
        caption=f"Smallest error over seeds against rank / dimension; {caption}.",
        panels={name: panel},
        x="rank_share",
        colour=colour,
        x_log=True,
        facet=facet,
        references=references,
        notes=drop_notes,
    )


def drop_notes(ours: pd.DataFrame) -> pd.DataFrame:
    """How far full rank is below half rank, at the lowest line of one layer, if it is apart."""
    one = ours[ours["layers"] == 1]
    at = {share: one[one["rank_share"] == share] for share in (0.5, 1.0)}
    keys = ["part", "dim", "points", "positions", "layers", "modules", "power"]
    both = at[1.0].merge(at[0.5][[*keys, "error_min"]], on=keys, suffixes=("", "_half"))
    lowest = both[both["error_min"] > 0].sort_values("error_min").head(1)
    ratio = lowest["error_min"] / lowest["error_min_half"]
    lowest = lowest[np.abs(np.log(ratio)) >= np.log(WORTH_A_NOTE)]
    labels = [f"{_against(each)} half rank" for each in ratio[lowest.index]]
    return lowest.assign(label=labels)[[*keys, "rank_share", "error_min", "label"]]


DEPTH_CLAIM = Claim(
    "Depth helps low rank with few points, and not with many",
    "theorem 4, conjecture",
    depth_helps_at_small_n,
)
