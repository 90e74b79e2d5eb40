"""The allocation paper's n-gram experiment: heads against head dimension at a fixed budget."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Figure, Study, Tier, Verdict
from headwise.nets.decoder import DecoderShape
from headwise.nets.shape import AttentionShape
from headwise.studies.differences import ALLOCATION_PAPER, best_group
from headwise.tasks.ngram import NGram, four_gram
from headwise.training import Streaming

PREDICTED, OBSERVED = 32, 8  # heads: by the paper's bound, and in its experiment
SETTING = ("target", "qk_norm", "heads", "head_dim")
DIM = 8
LEARNT = 0.9  # where no seed is below this error, nothing is said about heads


def decoder(task: NGram, width: int, budget: int, heads: int, qk_norm: bool) -> DecoderShape:
    """One layer of `heads` heads that share `budget` dimensions, in queries, keys and values."""
    layer = AttentionShape(heads=heads, qk_dim=budget // heads, v_dim=budget // heads)
    return DecoderShape(
        vocabulary=0,
        width=width,
        layers=(layer,),
        ffn=2 * width,
        length=task.length,
        positions="learned",
        qk_norm=qk_norm,
        token_dim=task.token_dim,
        outputs=task.outputs,
    )


def _parts(
    length: int,
    targets: tuple[str, ...],
    width: int,
    budget: int,
    training: Streaming,
    seeds: int,
    heads: tuple[int, ...] = (),
) -> dict[str, list[Run]]:
    tasks = [four_gram(length, DIM, target) for target in targets]  # type: ignore[arg-type]
    counts = heads or [2**power for power in range(budget.bit_length())]
    return {
        "plain" if not qk_norm else "qk-norm": [
            Run(
                kind="ngram",
                task=task,
                net=decoder(task, width, budget, count, qk_norm),
                training=training,
                seed=seed,
            )
            for task, count, seed in product(tasks, counts, range(seeds))
        ]
        for qk_norm in (False, True)
    }


def quick_parts() -> dict[str, list[Run]]:
    """Length 16, two targets, a budget of 32 dimensions."""
    training = Streaming(steps=600, rate=0.01, batch=32, validation=1024, evaluations=4)
    return _parts(16, ("linear", "tanh"), 64, 32, training, seeds=3)


def standard_parts() -> dict[str, list[Run]]:
    """Length 24, two targets, a budget of 64 dimensions; four seeds."""
    training = Streaming(steps=2_500, rate=0.005, batch=32, validation=4096, evaluations=5)
    heads = (1, 4, 8, 16, 32)
    return _parts(24, ("linear", "tanh"), 64, 64, training, seeds=4, heads=heads)


def full_parts() -> dict[str, list[Run]]:
    """Length 64, three targets, a budget of 128 dimensions."""
    training = Streaming(steps=50_000, rate=0.003, batch=64, validation=4096, evaluations=20)
    return _parts(64, ("linear", "tanh", "bilinear"), 128, 128, training, seeds=8)


def one_lag_a_head(ours: pd.DataFrame) -> pd.DataFrame:
    """The least error if every head attends to one lag: `NGram.least_error`, no fit.

    The token itself needs no head (the stream carries it). Another lag needs as many heads as
    together have the DIM dimensions of a token; the lags so reached are seen, the others are not.
    Targets that lose the same by every lag have one line, named after all of them.
    """
    rows = []
    for row in ours.drop_duplicates(["part", "target", "heads"]).to_dict("records"):
        task = four_gram(2 * DIM, DIM, row["target"])
        reached = row["heads"] // max(1, -(-DIM // row["head_dim"]))
        place = {name: row[name] for name in ("part", "target", "heads", "head_dim", "qk_norm")}
        error = max(task.least_error(task.lags[: 1 + reached]), 1e-6)
        alike = [name for name in ours["target"].unique() if _losses(name) == _losses(task.target)]
        label = f"least error, one lag a head: {' or '.join(alike)}"
        rows.append({**place, "label": label, "error_min": error})
    drawn = pd.DataFrame(rows, columns=["part", *SETTING, "label", "error_min"])
    drawn = drawn.drop_duplicates(["part", "heads", "label"])
    return drawn[drawn["error_min"] > 1e-6]  # a logarithmic axis has no zero


def _losses(target: Any) -> list[float]:
    """The least errors of a target by the number of lags that are seen."""
    task = four_gram(2 * DIM, DIM, target)
    return [round(task.least_error(task.lags[:seen]), 9) for seen in range(1, len(task.lags) + 1)]


def best_heads(results: pd.DataFrame) -> dict[tuple[str, bool], tuple[int, list[int]]]:
    """(target, QK-norm) → the best head count, and those that its interval does not exclude."""
    finished = results.dropna(subset="error")
    return {
        (str(target), bool(qk_norm)): best_group(rows, "heads")
        for (target, qk_norm), rows in finished.groupby(["target", "qk_norm"])
        if rows["error"].min() < LEARNT
    }


def _is_best(results: pd.DataFrame, heads: int) -> Verdict:
    found = best_heads(results)
    if not found or heads not in set(results["heads"]):
        return NOT_TESTED
    numbers = "; ".join(
        f"{_describe(key)}: best {best}, not told apart from it {_list(group)}"
        for key, (best, group) in found.items()
    )
    holds = all(heads in group for _, group in found.values())
    meaning = f"mean error with {heads} heads over the least, at most"
    return Verdict.of(holds, numbers, _behind(results, heads, found), meaning)


def _behind(results: pd.DataFrame, heads: int, arms: Iterable[tuple[str, bool]]) -> float | None:
    """The geometric mean of the errors with these heads over the least such mean, at most."""
    positive = results[results["error"] > 0]
    logs = np.log(positive["error"]).groupby([positive[name] for name in SETTING[:3]])
    means = logs.mean().unstack().reindex(index=list(arms))
    apart = (means.reindex(columns=[heads])[heads] - means.min(axis=1)).dropna()
    return float(np.exp(apart.max())) if len(apart) else None


def eight_are_best(results: pd.DataFrame) -> Verdict:
    """For every target, with and without QK-norm."""
    return _is_best(results, OBSERVED)


def thirty_two_are_best(results: pd.DataFrame) -> Verdict:
    """For every target, with and without QK-norm."""
    return _is_best(results, PREDICTED)


def too_few_heads_miss_lags(results: pd.DataFrame) -> Verdict:
    """One head sees one lag beside the token itself: no seed is below that least error."""
    one = results[results["heads"] == 1].dropna(subset="error")
    if one.empty:
        return NOT_TESTED
    gaps = {}
    for target, rows in one.groupby("target"):
        task = four_gram(2 * DIM, DIM, target)
        gaps[target] = (rows["error"].min(), task.least_error((0, 1)))
    numbers = ", ".join(
        f"{name}: {found:.3f} ≥ {least:.3f}" for name, (found, least) in gaps.items()
    )
    nearest = float(min(found / least for found, least in gaps.values()))
    said, meaning = f"one head, smallest error: {numbers}", "the least over its bound (bar 0.97)"
    return Verdict.of(nearest >= 0.97, said, nearest, meaning)


def finding(results: pd.DataFrame) -> Conclusion:
    """Is there a head count that is nowhere told apart from the best?"""
    if results.empty or results["error"].isna().all():
        return Conclusion("No run is finished.", None, "finishing the study")
    found = best_heads(results)
    if not found:
        return Conclusion("No network learnt any target.", None, "more steps (a larger tier)")
    answers = "; ".join(f"{_describe(k)}: {best} ({_list(g)})" for k, (best, g) in found.items())
    common = set.intersection(*(set(group) for _, group in found.values()))
    lead = (
        f"The paper's bound says {PREDICTED}, its experiment {OBSERVED}. Best here, and in "
        f"brackets those not told apart from it: {answers}."
    )
    if len(common) == 1:
        (value,) = common
        return Conclusion(f"{value} heads are nowhere told apart from the best. {lead}", value)
    return Conclusion(
        f"No single head count is best everywhere. {lead}",
        None,
        "more seeds, or more steps (a larger tier)",
    )


def _describe(key: tuple[str, bool]) -> str:
    return f"{key[0]}{' with QK-norm' if key[1] else ''}"


def _list(heads: list[int]) -> str:
    return ", ".join(map(str, heads))


NGRAM_HEADS = Study(
    name="ngram-heads",
    title="Many narrow heads or few wide ones, for a 4-gram?",
    question="At a fixed budget of heads × dimension, which number of heads learns a 4-gram best?",
    paper=ALLOCATION_PAPER,
    tiers={
        "quick": Tier("about 260 CPU-seconds: 2½ minutes on two cores", quick_parts),
        "standard": Tier("about 15 CPU-minutes: two targets, length 24", standard_parts),
        "full": Tier("about 400 CPU-hours (estimated); for a cluster or a GPU", full_parts),
    },
    parts={"plain": "Without QK-norm", "qk-norm": "With QK-norm"},
    claims=(
        Claim("8 heads are best, or not told apart from it", "its experiment", eight_are_best),
        Claim("32 heads are best, or not told apart from it", "its bound", thirty_two_are_best),
        Claim(
            "One head reaches one lag beside the token itself",
            "NGram.least_error",
            too_few_heads_miss_lags,
        ),
    ),
    figures=(
        Figure(
            name="heads",
            title="4-gram on white noise: heads at a fixed budget of heads × dimension",
            caption="Smallest error over seeds; grey: the least if every head sees one lag.",
            panels={"plain": "without QK-norm", "qk-norm": "with QK-norm"},
            x="heads",
            colour="target",
            x_log=True,
            references=one_lag_a_head,
        ),
    ),
    finding=finding,
    notes=(
        "Tokens are standard Gaussian of 8 coordinates; the target sums the token and the three "
        "before it, each turned by a rotation of its own (linear), through tanh, or multiplies "
        "neighbours (bilinear). The paper names the task; sizes and weights are our choice.",
        "One decoder layer with learned positions; heads × dimension is fixed, for queries, keys "
        "and values alike, so all have the same attention parameters. Every sweep is run with "
        "and without QK-norm: without it, narrow heads also have a smaller scale.",
        "'Not told apart': the 95 % interval of the ratio of (geometric) mean errors holds 1 "
        "(Welch), seeds as the sample. A target that no network learns (error above 0.9) is left "
        "out of the verdicts.",
        "The paper prints no errors that are at hand, only the best head counts.",
        "Every batch is fresh; AdamW, 5 % warm-up, cosine to zero. The quick tier's 600 steps are "
        "few for networks with QK-norm: their errors are still falling.",
    ),
    setting=SETTING,
    rows=("target", "heads"),
    columns="qk_norm",
)
