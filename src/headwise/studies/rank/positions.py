"""The rank paper's experiment with positions: with them, layers of low rank can vote."""

import pandas as pd

from headwise.lab.run import Run
from headwise.lab.study import Conclusion
from headwise.studies.published import as_references, in_every_panel
from headwise.studies.rank import shared
from headwise.studies.rank.questions import rank_study
from headwise.training import Streaming


def quick_parts() -> dict[str, list[Run]]:
    """d = 4 with 4 concatenated coordinates (3 points) or 16 (16 points); one and two layers."""
    few, many = shared.farthest(4, 3, "concatenated"), shared.farthest(4, 16, "concatenated")
    training = Streaming(steps=3_000, rate=0.01, batch=64, validation=2048)
    ranks, depths = (2, 4), (1, 2)
    runs = shared.encoder_runs((few, many), ranks, depths, (1,), training, seeds=2, ffn=64)
    return {"positions": runs}


def standard_parts() -> dict[str, list[Run]]:
    """d = 8; none, additive and concatenated positions; one and three layers; eight seeds."""
    training = Streaming(steps=2_500, rate=0.005, batch=64)
    tasks = [shared.farthest(8, points, "concatenated") for points in (4, 16)]
    few, ranks = [shared.farthest(8, 4, "additive"), shared.farthest(8, 4)], (1, 4, 8)
    return {
        "positions": shared.encoder_runs(tasks, ranks, (1, 3), (1,), training, seeds=8, ffn=128)
        + shared.encoder_runs(few, (4, 8), (1, 3), (1,), training, seeds=8, ffn=128)
    }


def full_parts() -> dict[str, list[Run]]:
    """The paper's size."""
    training = Streaming(steps=200_000, rate=0.005, batch=256)
    ranks = (1, 2, 4, 8, 16, 32, 64)
    tasks = [shared.farthest(64, 16, kind) for kind in ("concatenated", "additive")]
    return {
        "positions": shared.encoder_runs(tasks, ranks, (1, 3), (1, 8), training, seeds=5, ffn=2048)
    }


def published() -> pd.DataFrame:
    """Read off figure 3."""
    return shared.read_offs({"positions": "rank_positions.csv"})


def references(ours: pd.DataFrame) -> pd.DataFrame:
    """The published curves with concatenated positions, in every panel."""
    label = "published, concatenated, d = 64, N = 16, L = "
    return in_every_panel(as_references(published(), label, "layers"), "points", ours)


def finding(results: pd.DataFrame) -> Conclusion:
    """By how much depth reduces the error of low rank, by number of points."""
    gains = shared.depth_gains(results)
    if gains.empty:
        return Conclusion("Only one depth is finished.", None, "finishing the study")
    best = gains.max(axis=1)
    listing = ", ".join(f"{gain:.2f}× with {points} points" for points, gain in best.items())
    helps = float(best.iloc[0]) >= shared.HELPS and best.iloc[0] == best.max()
    return Conclusion(
        f"{'' if helps else 'Inconclusive: '}With positions, more layers reduce the error of "
        f"low-rank heads by {listing}.",
        round(float(best.iloc[0])) if helps else None,
        "" if helps else "more steps (a larger tier)",
        answer="depth helps most with the fewest points",
    )


RANK_POSITIONS = rank_study(
    "rank-positions",
    tiers=(quick_parts, standard_parts, full_parts),
    published=published,
    claims=(
        shared.DEPTH_CLAIM,
        shared.falling_claim("Figure 3"),
    ),
    figures=(
        shared.rank_figure(
            "positions",
            "Rank and depth, with positions",
            "a line a depth, a panel a number of points",
            "Figure 3",
            colour="layers",
            facet="points",
            references=references,
        ),
    ),
    finding=finding,
    notes=(
        *shared.NOTES,
        "Positions are fixed orthonormal codes, appended to a point or added to it; the answer is "
        "the point without its code. The paper leaves the codes open.",
        "Quick: d = 4, concatenated, 3 and 16 points, one and two layers, feed-forward width 64, "
        "batch 64, 3000 steps instead of d = 64, 16 points, one and three layers, 2048, 256, "
        "200,000. The sizes were chosen after a run with 3 and 8 points, where the second layer "
        "still reduced the error 1.37× with 8.",
        "Standard: d = 8, 4 and 16 points with concatenated positions, 4 with added ones and with "
        "none, one and three layers, feed-forward width 128, batch 64, 2500 steps, eight seeds.",
    ),
    setting=shared.SETTING,
    rows=("positions", "points", "rank"),
    columns="layers",
)
