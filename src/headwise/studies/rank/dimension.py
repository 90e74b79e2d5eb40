"""Figure d of the rank paper: rank × dimension."""

import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Verdict
from headwise.studies.rank import shared
from headwise.studies.rank.questions import rank_study
from headwise.training import Streaming

SHARES = (0.25, 0.5, 1.0)


def _runs(
    dims: tuple[int, ...], modules: int, ffn_per_dim: int, training: Streaming, seeds: int
) -> list[Run]:
    """One layer on eight points; the feed-forward network grows with the dimension."""
    runs = []
    for dim in dims:
        task, ranks = [shared.farthest(dim, 8)], [int(share * dim) for share in SHARES]
        ffn = ffn_per_dim * dim
        runs += shared.encoder_runs(task, ranks, (1,), (modules,), training, seeds, ffn)
    return runs


def quick_parts() -> dict[str, list[Run]]:
    """d = 4, 8, 16 instead of 16 … 256; one layer, w = 1."""
    training = Streaming(steps=2_500, rate=0.02, batch=64, validation=2048)
    return {"dimension": _runs((4, 8, 16), 1, 4, training, seeds=4)}


def standard_parts() -> dict[str, list[Run]]:
    """d = 8, 16, 32; two modules; eight seeds."""
    training = Streaming(steps=5_000, rate=0.01, batch=64)
    return {"dimension": _runs((8, 16, 32), 2, 8, training, seeds=8)}


def full_parts() -> dict[str, list[Run]]:
    """The paper's size."""
    training = Streaming(steps=200_000, rate=0.005, batch=256)
    shares = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
    runs = []
    for dim in (16, 64, 128, 256):
        ranks = [int(share * dim) for share in shares]
        task = [shared.farthest(dim, 16)]
        runs += shared.encoder_runs(task, ranks, (2,), (8,), training, seeds=5, ffn=2048)
    return {"dimension": runs}


def grows_with_dimension(results: pd.DataFrame) -> Verdict:
    """At half rank, the error does not fall as the dimension grows."""
    errors = shared.smallest(results, ["layers", "dim"], rank_share=0.5)
    curves = [rows.droplevel(0) for _, rows in errors.groupby(level=0) if len(rows) > 1]
    if not curves:
        return NOT_TESTED
    growth = min(float((curve / curve.shift()).min()) for curve in curves)
    numbers = ", ".join(f"d = {dim}: {error:.3g}" for dim, error in curves[0].items())
    meaning = "least error over that of the next lower dimension (bar 1)"
    return Verdict.of(growth > 1, f"half rank, {numbers}", growth, meaning)


def finding(results: pd.DataFrame) -> Conclusion:
    """Does the price of half the rank change with the dimension?"""
    return shared.price_finding(
        results,
        "dim",
        "d",
        grows="Yes: over full rank, low rank costs more in a higher dimension",
        falls="Yes: over full rank, low rank costs less in a higher dimension",
        same="No: low rank costs about as much in a low dimension as in a high one",
    )


RANK_DIMENSION = rank_study(
    "rank-dimension",
    tiers=(quick_parts, standard_parts, full_parts),
    claims=(
        shared.full_rank_claim("Figure d", "whatever the dimension"),
        shared.falling_claim("Figure d"),
        Claim("The error at half rank grows with the dimension", "Figure d", grows_with_dimension),
    ),
    figures=(
        shared.rank_figure(
            "dimension",
            "Rank and dimension, at equal parameters",
            "a line a dimension",
            "Figure d",
            colour="dim",
        ),
    ),
    finding=finding,
    notes=(
        *shared.NOTES,
        "Quick: d = 4, 8, 16, N = 8, one layer, w = 1, feed-forward width 4·d, batch 64, 2500 "
        "steps instead of d up to 256, N = 16, two layers, w = 8, 2048, 256, 200,000.",
        "Standard: d = 8, 16, 32, N = 8, one layer, w = 2, feed-forward width 8·d, batch 64, 5000 "
        "steps, eight seeds.",
        "No numbers could be read off the paper's figure for this sweep.",
    ),
    setting=shared.SETTING,
    rows=("rank_share",),
    columns="dim",
)
