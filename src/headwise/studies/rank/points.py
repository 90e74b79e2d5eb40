"""Figure N of the rank paper: rank × number of points."""

import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import Conclusion
from headwise.studies.published import as_references
from headwise.studies.rank import shared
from headwise.studies.rank.questions import rank_study
from headwise.training import Streaming

QUICK = Streaming(steps=2_500, rate=0.02, batch=64, validation=2048)


def quick_parts() -> dict[str, list[Run]]:
    """d = 8 instead of 64, w = 1 instead of 64, one layer."""
    tasks = [shared.farthest(8, points) for points in (4, 8, 16)]
    return {"points": shared.encoder_runs(tasks, (1, 2, 4, 8), (1,), (1,), QUICK, seeds=4, ffn=32)}


def standard_parts() -> dict[str, list[Run]]:
    """d = 16, two modules; one layer, and two for 4 and 16 points; eight seeds."""
    few, some, many = (shared.farthest(16, points) for points in (4, 8, 16))
    one = Streaming(steps=3_600, rate=0.01, batch=64)
    deep = Streaming(steps=3_600, rate=0.003, batch=64)
    one_layer = shared.encoder_runs((few, some, many), (4, 8, 16), (1,), (2,), one, 8, ffn=128)
    return {
        "points": one_layer
        + shared.encoder_runs((few, many), (4, 8), (2,), (2,), deep, seeds=8, ffn=128)
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
    """The published curves (d = 64, two layers) where our runs have the same dimension and depth.

    Curves of another size would look like a comparison and be none.
    """
    theirs = as_references(published(), "published, N = ", "points")
    same = ours[["dim", "layers"]].drop_duplicates()
    return theirs.merge(same, on=["dim", "layers"])


def finding(results: pd.DataFrame) -> Conclusion:
    """Does the price of half the rank grow with the number of points?"""
    return shared.price_finding(
        results,
        "points",
        "N",
        grows="Yes: low rank costs more with more points",
        falls="No: low rank costs less with more points",
        same="No: low rank costs about as much with few points as with many",
    )


RANK_POINTS = rank_study(
    "rank-points",
    tiers=(quick_parts, standard_parts, full_parts),
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
    finding=finding,
    notes=(
        *shared.NOTES,
        "Published curves (d = 64, two layers) are drawn where ours have that size: in the full "
        "tier. Elsewhere they would be a comparison of different networks.",
        "Quick: d = 8, w = 1, feed-forward width 32, batch 64, 2500 steps instead of d = 64, "
        "w = 64, 2048, 256, 200,000; N up to 16 instead of 256; one layer instead of two. What "
        "depth does with few and many points is tested from the standard tier on, and cheaply, "
        "with positions, by rank-positions.",
        "Standard: d = 16, w = 2, feed-forward width 128, batch 64, 3600 steps, N up to 16, "
        "eight seeds; two layers with 4 and 16 points, at half and quarter rank.",
    ),
    setting=shared.SETTING,
    rows=("layers", "rank"),
    columns="points",
)
