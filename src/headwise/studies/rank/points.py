"""Figure N of the rank paper: rank × number of points."""

import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import Study, Tier
from headwise.studies.published import as_references, in_every_panel
from headwise.studies.rank import shared
from headwise.training import Streaming

QUICK = Streaming(steps=2_500, rate=0.02, batch=64, validation=2048)


def quick_parts() -> dict[str, list[Run]]:
    """d = 8 instead of 64, w = 1 instead of 64, one layer."""
    tasks = [shared.farthest(8, points) for points in (4, 8, 16)]
    return {"points": shared.encoder_runs(tasks, (1, 2, 4, 8), (1,), (1,), QUICK, seeds=3, ffn=32)}


def standard_parts() -> dict[str, list[Run]]:
    """d = 16, four modules; one and two layers."""
    tasks = [shared.farthest(16, points) for points in (4, 8, 16)]
    one = Streaming(steps=6_000, rate=0.01, batch=64)
    deep = Streaming(steps=6_000, rate=0.003, batch=64)
    return {
        "points": shared.encoder_runs(tasks, (2, 4, 8, 16), (1,), (4,), one, seeds=2, ffn=128)
        + shared.encoder_runs(tasks, (2, 4, 8, 16), (2,), (4,), deep, seeds=2, ffn=128)
    }


def full_parts() -> dict[str, list[Run]]:
    """The paper's size, and one layer beside its two."""
    training = Streaming(steps=200_000, rate=0.005, batch=256)
    tasks = [shared.farthest(64, points) for points in (4, 16, 64, 256)]
    ranks = (1, 8, 16, 32, 64)
    return {"points": shared.encoder_runs(tasks, ranks, (1, 2), (64,), training, seeds=5, ffn=2048)}


def published() -> pd.DataFrame:
    """Read off figure N."""
    return shared.read_offs({"points": "rank_points.csv"})


def references(ours: pd.DataFrame) -> pd.DataFrame:
    """The published curves, all of two layers, in every panel."""
    theirs = as_references(published(), "published, d = 64, L = 2, w = 64, N = ", "points")
    return in_every_panel(theirs, "layers", ours)


RANK_POINTS = Study(
    name="rank-points",
    title="Does low rank cost more when there are more points?",
    question="At equal parameters, how does the error depend on rank and number of points?",
    paper=shared.PAPER,
    tiers={
        "quick": Tier("about 190 CPU-seconds: 1½ minutes on two cores", quick_parts),
        "standard": Tier(
            "about 1.7 CPU-hours: 50 minutes on two cores (estimated)", standard_parts
        ),
        "full": Tier("about 340,000 CPU-hours (estimated): the paper's size, for GPUs", full_parts),
    },
    parts={"points": "Figure N: rank × number of points"},
    published=published,
    claims=(
        shared.full_rank_claim("Figure N", "whatever the points"),
        shared.falling_claim("Figure N"),
        shared.DEPTH_CLAIM,
    ),
    figures=(
        shared.rank_figure(
            "points",
            "Rank and number of points, at equal parameters",
            "a line a number of points, a panel a depth",
            "Figure N",
            colour="points",
            facet="layers",
            references=references,
        ),
    ),
    finding=shared.rank_finding,
    notes=(
        *shared.NOTES,
        "Quick: d = 8, w = 1, feed-forward width 32, batch 64, 2500 steps instead of d = 64, "
        "w = 64, 2048, 256, 200,000; N up to 16 instead of 256; one layer instead of two. What "
        "depth does with few and many points is tested from the standard tier on, and cheaply, "
        "with positions, by rank-positions.",
        "Standard: d = 16, w = 4, feed-forward width 128, batch 64, 6000 steps, N up to 16.",
    ),
    setting=shared.SETTING,
    rows=("layers", "rank"),
    columns="points",
)
