"""What the studies of the rank paper ask, one a figure of it, and what their tiers cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwise.lab.study import Parts, Study, Tier
from headwise.studies.rank.shared import PAPER

Runs = Callable[[], Parts]


@dataclass(frozen=True)
class Asked:
    """Title and question of a study, the price of each tier, and the title of its one part."""

    title: str
    question: str
    quick: str
    standard: str
    full: str
    part: str = ""


ASKED = {
    "rank-depth": Asked(
        "What does it cost to split attention into heads of low rank?",
        "At equal parameters, does the error fall with the rank, and does depth help?",
        quick="about 270 CPU-seconds: 2½ minutes on two cores",
        standard="about 15 CPU-minutes: cut to d = 16 and two powers of d",
        full="about 17,000 CPU-hours (estimated): the paper's size, for a GPU",
        part="Figure 1: rank × layers × attention parameters",
    ),
    "rank-points": Asked(
        "Does low rank cost more when there are more points?",
        "At equal parameters, how does the error depend on rank and number of points?",
        quick="about 250 CPU-seconds: 2 minutes on two cores",
        standard="about 14 CPU-minutes: d = 16, w = 2, 3600 steps",
        full="about 340,000 CPU-hours (estimated): the paper's size, for GPUs",
        part="Figure N: rank × number of points",
    ),
    "rank-dimension": Asked(
        "Does the cost of low rank depend on the dimension?",
        "At equal parameters, how does the error depend on rank and dimension?",
        quick="about 150 CPU-seconds: 1½ minutes on two cores",
        standard="about 10 CPU-minutes: d up to 32, w = 2, 5000 steps",
        full="about 11,000 CPU-hours (estimated): the paper's size, for a GPU",
        part="Figure d: rank × dimension",
    ),
    "rank-positions": Asked(
        "Do positions and depth make up for low rank?",
        "With positions, do more layers of low-rank heads help, and up to how many points?",
        quick="about 200 CPU-seconds: 2 minutes on two cores",
        standard="about 18 CPU-minutes: d = 8, 2500 steps",
        full="about 16,000 CPU-hours (estimated): the paper's size, for a GPU",
        part="Figure 3: rank × layers, with positions",
    ),
    "rank-random-features": Asked(
        "How good can one layer of rank-1 heads be?",
        "Do random or trained rank-1 heads come near the lower bound for two points?",
        quick="about 90 CPU-seconds: under a minute on two cores",
        standard="about 20 CPU-minutes",
        full="about 54 CPU-hours (estimated), and 3 GB of memory a process",
    ),
    "rank-in-context": Asked(
        "How many heads should a fixed width have for regression in context?",
        "Linear regression in context: does splitting the width into more heads hurt?",
        quick="about 290 CPU-seconds: 2½ minutes on two cores",
        standard="about 8 CPU-minutes: 4 dimensions, 8 shots, 3 layers",
        full="about 1,700 CPU-hours (estimated): the paper's size, for a GPU",
        part="In-context linear regression: heads at fixed width",
    ),
}


def rank_study(
    name: str, *, tiers: tuple[Runs, Runs, Runs], rows: tuple[str, ...], columns: str, **rest: Any
) -> Study:
    """The study of that name: the runs of its three tiers, and the other fields of a `Study`.

    Its one part is called as the study is, without the paper's name.
    """
    asked = ASKED[name]
    quick, standard, full = tiers
    priced = {
        "quick": Tier(asked.quick, quick),
        "standard": Tier(asked.standard, standard),
        "full": Tier(asked.full, full),
    }
    rest = {"parts": {name.removeprefix("rank-"): asked.part}, "paper": PAPER} | rest
    return Study(name, asked.title, asked.question, priced, rows=rows, columns=columns, **rest)
