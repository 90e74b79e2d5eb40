"""A rank study small enough for tests: trained encoders and a built layer, a few steps."""

from dataclasses import replace

from headwise.lab.run import Run
from headwise.lab.study import Tier
from headwise.studies.rank import shared
from headwise.studies.rank.depth import RANK_DEPTH
from headwise.studies.rank.random_features import RANK_RANDOM_FEATURES, quick_parts
from headwise.training import Streaming


def depth_parts() -> dict[str, list[Run]]:
    training = Streaming(steps=6, rate=0.01, batch=16, validation=32, evaluations=2)
    task = [shared.farthest(4, 4)]
    return {"depth": shared.encoder_runs(task, (2, 4), (1, 2), (1,), training, seeds=2, ffn=8)}


def features_parts() -> dict[str, list[Run]]:
    parts = quick_parts()
    short = Streaming(steps=4, rate=0.01, batch=16, validation=32, evaluations=2)
    return {
        "random-features": [run for run in parts["random-features"] if run.measure.heads <= 64],
        "trained": [replace(run, training=short) for run in parts["trained"][:4]],
        "vote": [run for run in parts["vote"] if run.measure.heads <= 64],
    }


TINY_DEPTH = replace(RANK_DEPTH, name="tiny-depth", tiers={"quick": Tier("seconds", depth_parts)})
TINY_FEATURES = replace(
    RANK_RANDOM_FEATURES, name="tiny-features", tiers={"quick": Tier("seconds", features_parts)}
)
