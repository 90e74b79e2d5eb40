"""The head-count paper's experiment on MS MARCO (arXiv 2510.06662, Tables 6 and 7)."""

from dataclasses import dataclass, replace
from typing import Literal

from headwise.lab.run import Run
from headwise.lab.study import Claim, Study, tiers_of
from headwise.studies.published import published_tables
from headwise.studies.real_data import claims, shared
from headwise.studies.real_data.arms import GROWING, SMALL, TITLES, ArmSizes
from headwise.tasks.text_ranking import MINILM, PARAGRAPHS, TextRanking, read_questions
from headwise.tasks.text_ranking.questions import store_questions
from headwise.training import ChoiceTraining

MS_MARCO = ("6660b79cbbeebb21e48f823c5977f4ce9128b08ca5360be6bf50ae3eb4df8c4a", 7_129)
"""Hash and number of the queries that the evidence is from, a sample of MS MARCO."""


@dataclass(frozen=True)
class RankingSize:
    """A tier: its networks, and the queries they learn from."""

    arms: ArmSizes
    lengths: tuple[int, ...]
    train: int
    held_out: int
    tokens: int
    packing: Literal["pairs", "candidates"] = "candidates"

    def task(self, name: str, questions: str, queries: int, length: int) -> TextRanking:
        """Lists of `length` candidates, with MiniLM's embeddings."""
        return TextRanking(
            name=name,
            questions=questions,
            queries=queries,
            embeddings=MINILM.sha256,
            token_dim=MINILM.dim,
            length=length,
            train=self.train,
            held_out=self.held_out,
            packing=self.packing,
            tokens=self.tokens,
        )


_SMALL = replace(SMALL, layers=2, seeds=8)

SIZES = {
    "quick": RankingSize(arms=_SMALL, lengths=(8, 16), train=500, held_out=500, tokens=64),
    "standard": RankingSize(
        arms=replace(
            _SMALL,
            heads=(1, 2, 4, 8, 16),
            training=ChoiceTraining(steps=250, rate=4e-3, batch=32),
        ),
        lengths=(8, 16, 32),
        train=1_000,
        held_out=1_000,
        tokens=64,
    ),
    "full": RankingSize(
        arms=ArmSizes(
            heads=(1, 2, 4, 6, 8, 10, 12, 14, 16),
            head_dim=32,
            width=480,
            held_heads=4,
            layers=2,
            training=ChoiceTraining(steps=17_500, rate=5e-4, batch=32, evaluations=10),
            seeds=5,
        ),
        lengths=(8, 16, 32, 64),
        train=28_000,
        held_out=2_000,
        tokens=128,
        packing="pairs",
    ),
}


def parts(tier: str) -> dict[str, list[Run]]:
    """The arms on questions made from Wikipedia."""
    queries = PARAGRAPHS.queries
    return _parts(tier, "Wikipedia paragraphs", PARAGRAPHS.sha256, queries)


def parts_of_evidence(tier: str) -> dict[str, list[Run]]:
    """The arms on the sample of MS MARCO that the shipped table is from."""
    return _parts(tier, "MS MARCO", *MS_MARCO)


def parts_of_data(tier: str, data: str) -> dict[str, list[Run]]:
    """The arms on MS MARCO, or on queries of one's own."""
    asked = read_questions(data)
    name = "MS MARCO" if "marco" in data.lower().replace("-", "").replace("_", "") else data
    MINILM.check()
    return _parts(tier, name, store_questions(asked), len(asked))


def _parts(tier: str, name: str, questions: str, queries: int) -> dict[str, list[Run]]:
    size = SIZES[tier]
    if tier == "full" and queries < size.train + size.held_out:
        size = _as_large_as_possible(size, queries)
    tasks = [size.task(name, questions, queries, length) for length in size.lengths]
    return size.arms.arms(tasks)


def _as_large_as_possible(size: RankingSize, queries: int) -> RankingSize:
    """The full tier where there are fewer queries than the paper had: one in fifteen held out."""
    held_out = max(1, queries // 15)
    return replace(size, train=max(1, queries - held_out), held_out=held_out)


TEXT_RANKING = Study(
    name="text-ranking",
    title="Heads or width, on text ranking?",
    question=(
        "The paper's encoders get better at ranking MS MARCO passages as heads are added, and "
        "wider with every head. Is it the heads, or the width?"
    ),
    paper=shared.PAPER,
    tiers=tiers_of(
        parts,
        {
            "quick": "about 3 CPU-minutes: 2 minutes on two cores",
            "standard": "about 22 CPU-minutes",
            "full": "the paper's setting, for GPUs (with --data, 30,000 queries): about 240,000 "
            "CPU-hours at the 27 GFLOP/s that a core was measured to do, "
            "330 GPU-hours at 20 TFLOP/s",
        },
    ),
    parts=TITLES,
    published=lambda: published_tables({GROWING: "head_count_table6.csv"}),
    claims=(
        *shared.shared_claims("Table 6", "Table 7"),
        Claim("MRR behaves as accuracy does", "Section on MS MARCO", claims.mrr_alike),
        Claim(
            "1 − accuracy ≈ c·T^b·exp(α h/T^δ) with α = −1.40, δ = 0.25",
            "Section on MS MARCO",
            claims.follows_the_formula,
        ),
    ),
    figures=shared.shared_figures("Table 6", "length"),
    finding=claims.finding("Queries and passages: {data}.", "the standard tier, or more seeds"),
    setting=("packing", "length", "heads", "total_width"),
    rows=("part", "heads", "total_width"),
    columns="length",
    score="mean",
    texts=(PARAGRAPHS, MINILM),
    parts_of_data=parts_of_data,
    parts_of_evidence=parts_of_evidence,
    notes=(
        "Without --data the study makes its own queries from Wikipedia paragraphs: a sentence asks "
        "for the rest of its paragraph. With --data (a folder with MS MARCO's files, or "
        "microsoft/ms_marco on the hub) it uses those.",
        shared.ARMS_NOTE,
        shared.SCORE_NOTE,
        "Candidates: the answer and the passages that BM25 ranks highest for the query among those "
        "of the same split; candidates that come with the data go first. The paper also mines "
        "negatives by vector similarity.",
        "Published beside ours are the numbers of Table 6 for the same heads and T. What differs "
        "below the full tier: 500 or 1,000 training queries instead of 28,000, 8 numbers a head "
        "instead of 32, MiniLM's frozen embeddings (384) instead of BERT's (768), all candidates "
        "as one sequence of pooled vectors. Packing, pooling, loss, epochs and length are "
        "unstated in the paper; ours are in every run's specification.",
        shared.TRAINING_NOTE,
        shared.SEEDS_NOTE,
        "Embeddings and Wikipedia: headwise study fetch text-ranking.",
    ),
)
