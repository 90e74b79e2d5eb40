"""A study small enough for tests: a transition at two heads, three thousand steps."""

from dataclasses import replace
from functools import partial

from headwise.lab.run import Run
from headwise.lab.study import Tier
from headwise.nets import ClassTokenShape
from headwise.studies.head_count.synthetic import HEAD_COUNT
from headwise.tasks.retrieval import sum_of_maxima
from headwise.training import Training


def parts(seeds: int = 2) -> dict[str, list[Run]]:
    training = Training(steps=3000, rate=1e-2, samples=256, validation=64, evaluations=4)
    return {
        "transition": [
            Run(
                kind="class-token",
                task=sum_of_maxima(length, intrinsic_dim=2),
                net=ClassTokenShape.standard(token_dim=4, heads=heads, width=8, head_dim=4),
                training=training,
                seed=seed,
            )
            for length in (4, 6, 8)
            for heads in (1, 2, 3)
            for seed in range(seeds)
        ]
    }


TINY = replace(HEAD_COUNT, name="tiny", tiers={"quick": Tier("a few seconds", parts)})
LONG = replace(TINY, tiers={"quick": Tier("minutes", partial(parts, 128))})
