"""Figure 1 of the rank paper: rank × depth × parameters, on the farthest-point task."""

from functools import cache

import pandas as pd

from headwise.build.neighbours import full_rank_encoder
from headwise.lab.run import Run
from headwise.lab.study import Claim
from headwise.studies.published import as_references
from headwise.studies.rank import shared
from headwise.studies.rank.questions import rank_study
from headwise.tasks import measure
from headwise.training import Streaming

QUICK_ONE = Streaming(steps=2_500, rate=0.02, batch=64, validation=2048)
QUICK_DEEP = Streaming(steps=2_500, rate=0.005, batch=64, validation=2048)


def quick_parts() -> dict[str, list[Run]]:
    """d = 8 and N = 8 instead of 64 and 16; one layer at w = 1 and 8, two layers at w = 1."""
    task, ranks = [shared.farthest(8, 8)], (1, 2, 4, 8)
    one = shared.encoder_runs(task, ranks, (1,), (1,), QUICK_ONE, seeds=4, ffn=32)
    many = shared.encoder_runs(task, (1, 4, 8), (1,), (8,), QUICK_ONE, seeds=2, ffn=32)
    deep = shared.encoder_runs(task, ranks, (2,), (1,), QUICK_DEEP, seeds=4, ffn=32)
    return {"depth": one + many + deep}


def standard_parts() -> dict[str, list[Run]]:
    """d = 16 and N = 8; one and three layers; d² and d^2.5 attention parameters, eight seeds."""
    task, ranks = [shared.farthest(16, 8)], (1, 4, 8, 16)
    one = Streaming(steps=5_000, rate=0.01, batch=64)
    deep = Streaming(steps=5_000, rate=0.003, batch=64)
    return {
        "depth": shared.encoder_runs(task, ranks, (1,), (1, 4), one, seeds=8, ffn=128)
        + shared.encoder_runs(task, (1, 8, 16), (3,), (1,), deep, seeds=8, ffn=128)
    }


def full_parts() -> dict[str, list[Run]]:
    """The paper's size."""
    training = Streaming(steps=100_000, rate=0.01, batch=256)
    ranks = (1, 2, 4, 8, 16, 32, 64)
    return {
        "depth": shared.encoder_runs(
            [shared.farthest(64, 16)], ranks, (1, 3, 5), (1, 8, 64), training, seeds=5, ffn=2048
        )
    }


def published() -> pd.DataFrame:
    """Read off figure 1."""
    return shared.read_offs({"depth": "rank_depth.csv"})


def references(ours: pd.DataFrame) -> pd.DataFrame:
    """The published curves of one and three layers, and the encoder by hand, in our panels."""
    theirs = published()
    theirs = theirs[theirs["power"].isin(set(ours["power"])) & theirs["layers"].isin([1, 3])]
    theirs = as_references(theirs, "published, d = 64, N = 16, L = ", "layers")
    built = ours[["dim", "points", "power"]].drop_duplicates()
    errors = [by_hand(int(row.dim), int(row.points)) for row in built.itertuples()]
    built = built.assign(rank_share=1.0, label="built by hand", error_min=errors)
    return pd.concat([theirs, built], ignore_index=True)


@cache
def by_hand(dim: int, points: int) -> float:
    """The measured error of the full-rank encoder that is built instead of trained."""
    task = shared.farthest(dim, points)
    return measure(full_rank_encoder(task), task, sequences=4096).error


RANK_DEPTH = rank_study(
    "rank-depth",
    tiers=(quick_parts, standard_parts, full_parts),
    published=published,
    claims=(
        shared.full_rank_claim(
            "Figure 1", "at equal parameters", shared.beside(shared.full_rank_wins, published)
        ),
        shared.falling_claim("Figure 1"),
        Claim(
            "More low-rank heads do not buy it back",
            "Figure 1",
            shared.beside(shared.heads_do_not_buy_it_back, published),
        ),
    ),
    figures=(
        shared.rank_figure(
            "depth",
            "Rank and depth, at equal parameters",
            "a line a depth, a panel for each power of d of the attention's parameters",
            "Figure 1",
            colour="layers",
            facet="power",
            references=references,
        ),
    ),
    finding=shared.rank_finding,
    notes=(
        *shared.NOTES,
        "Quick: d = 8, N = 8, feed-forward width 32, batch 64, 2500 steps instead of d = 64, "
        "N = 16, 2048, 256, 100,000; two layers at most; rate .02 for one layer, .005 for two.",
        "Standard: d = 16, N = 8, w = 1 and 4 (w = 64 is left out), feed-forward width 128, "
        "batch 64, 5000 steps, eight seeds.",
    ),
    setting=shared.SETTING,
    rows=("modules", "rank"),
    columns="layers",
)
