"""Remove parameters of a trained layer by narrower heads or by fewer: which costs less?"""

from itertools import product

import numpy as np
import pandas as pd

from headwise.lab.kinds.cut_layer import LEAST, Reduced
from headwise.lab.run import Run
from headwise.lab.study import Claim, Conclusion, Figure, Study, Tier, Verdict
from headwise.nets import DecoderShape
from headwise.studies.allocation import shared
from headwise.training import TextTraining

KEPT = (0.25, 0.5, 0.75)
NOT_TESTED = Verdict("not tested", "no cut was measured both ways")


def parts(shape: DecoderShape, training: TextTraining, seeds: int) -> dict[str, list[Run]]:
    """Every layer cut to every share, both ways."""
    task = shared.packaged_text(shape.length)
    cuts = [
        Run(
            task=task,
            net=Reduced(shape=shape, layer=layer, way=way, keep=keep),  # type: ignore[arg-type]
            training=training,
            seed=seed,
        )
        for layer, way, keep, seed in product(
            range(len(shape.layers)), ("dimension", "count"), KEPT, range(seeds)
        )
    ]
    return {"cuts": cuts, "training": shared.training_runs(shape, training, seeds)}


def quick_parts() -> dict[str, list[Run]]:
    training = TextTraining(steps=500, rate=0.004, batch=16, validation=64, evaluations=1)
    return parts(shared.uniform_decoder(4, 8, 8, 64), training, seeds=3)


def standard_parts() -> dict[str, list[Run]]:
    training = TextTraining(steps=1000, rate=0.003, batch=16, evaluations=1)
    return parts(shared.uniform_decoder(6, 8, 16, 128), training, seeds=4)


def full_parts() -> dict[str, list[Run]]:
    training = TextTraining(steps=2000, rate=0.002, batch=16, evaluations=1)
    return parts(shared.uniform_decoder(6, 8, 48, 256), training, seeds=5)


def paired(results: pd.DataFrame) -> pd.DataFrame:
    """One row a layer, share and seed: the increases of the loss both ways."""
    cuts = results[(results["part"] == "cuts") & ~results["diverged"]]
    if cuts.empty:
        return pd.DataFrame(columns=["layer", "keep", "seed", "dimension", "count"])
    table = cuts.pivot_table(index=["layer", "keep", "seed"], columns="way", values="increase")
    return table.reset_index().dropna()


def ratios(pairs: pd.DataFrame) -> pd.Series:
    """By layer: the geometric mean of (increase by dimension) / (increase by count)."""
    logs = np.log(pairs["dimension"].clip(lower=LEAST) / pairs["count"].clip(lower=LEAST))
    return np.exp(logs.groupby(pairs["layer"]).mean())


def dimension_is_cheaper(results: pd.DataFrame) -> Verdict:
    """In the mean over layers, shares and seeds, and in at least three quarters of the pairs."""
    pairs = paired(results)
    if pairs.empty or not {"dimension", "count"} <= set(pairs.columns):
        return NOT_TESTED
    wins = float((pairs["dimension"] < pairs["count"]).mean())
    overall = float(np.exp(np.log(ratios(pairs)).mean()))
    return Verdict(
        "holds" if overall < 1 and wins >= 0.75 else "does not hold",
        f"narrowing costs {overall:.2f} times what removing heads does, and less in {wins:.0%} of "
        f"{len(pairs)} pairs; by layer {_by_layer(ratios(pairs))}",
    )


def in_every_layer(results: pd.DataFrame) -> Verdict:
    pairs = paired(results)
    if pairs.empty:
        return NOT_TESTED
    found = ratios(pairs)
    return Verdict("holds" if (found < 1).all() else "does not hold", _by_layer(found))


def later_layers_cost_less(results: pd.DataFrame) -> Verdict:
    """The second half of the layers against the first, at half the parameters, either way."""
    pairs = paired(results)
    half = pairs[np.isclose(pairs["keep"].astype(float), 0.5)]
    if half.empty:
        return NOT_TESTED
    cheaper = half[["dimension", "count"]].min(axis=1).clip(lower=LEAST)
    by_layer = np.exp(np.log(cheaper).groupby(half["layer"]).mean())
    middle = len(by_layer) / 2
    early, late = by_layer[by_layer.index < middle], by_layer[by_layer.index >= middle]
    numbers = ", ".join(f"layer {i}: {value:.4f}" for i, value in by_layer.items())
    return Verdict(
        "holds" if late.mean() < early.mean() else "does not hold",
        f"nats a token lost with half of a layer's parameters, the cheaper way: {numbers}",
    )


def _by_layer(found: pd.Series) -> str:
    return ", ".join(f"layer {index}: {ratio:.2f}×" for index, ratio in found.items())


def finding(results: pd.DataFrame) -> Conclusion:
    verdict = dimension_is_cheaper(results)
    if verdict.status == "not tested":
        return Conclusion("Inconclusive: nothing was cut yet.", None, "running the study")
    says = "costs less than" if verdict.status == "holds" else "does not reliably cost less than"
    better = int((ratios(paired(results)) < 1).sum())
    return Conclusion(
        f"Reducing head dimension {says} reducing head count here: {verdict.numbers}.", better
    )


DIMENSION_OR_COUNT = Study(
    name="dimension-or-count",
    title="Narrower heads or fewer: which loses less?",
    question="At equal parameters, does a trained layer lose less by narrowing its heads or by "
    "removing some?",
    paper=shared.PAPER,
    tiers={
        "quick": Tier("about 130 CPU-seconds: 1½ minutes on two cores", quick_parts),
        "standard": Tier("about 1 CPU-hour: 30 minutes on two cores (estimated)", standard_parts),
        "full": Tier("about 14 CPU-hours (estimated): width 384, length 256", full_parts),
    },
    parts={
        "cuts": "One layer cut to a share of its parameters, without retraining",
        "training": "Decoders to cut",
    },
    published=shared.nothing_published,
    claims=(
        Claim(
            "Reducing head dimension costs less than reducing head count at equal parameters",
            "2510.03784",
            dimension_is_cheaper,
        ),
        Claim("It does so in every layer", "headwise", in_every_layer),
        Claim("Later layers can do with fewer parameters", "2510.03784", later_layers_cost_less),
    ),
    figures=(
        Figure(
            name="cuts",
            title="What it costs to remove parameters of one layer",
            caption="Increase of the held-out loss, nats a token, against the share of the layer's "
            "parameters that is kept; a panel a layer.",
            panels={"cuts": "one layer cut"},
            x="keep",
            colour="way",
            facet="layer",
        ),
    ),
    finding=finding,
    notes=(
        shared.TEXT_NOTE,
        shared.CUT_NOTE,
        "Heads that are removed are those whose removal alone costs least on training windows.",
        f"Nothing is trained after a cut. Increases below {LEAST:g} are counted as {LEAST:g}.",
        "Quick: 4 layers of 8 heads of 8, length 64, 500 steps. Standard: 6 × 8 heads of 16, "
        "length 128, 1000 steps. Full: 6 × 8 heads of 48, length 256, 2000 steps.",
    ),
    setting=("layer", "way", "keep"),
    rows=("layer", "way"),
    columns="keep",
    error="loss increase",
    score="mean",
    error_is="rise of the held-out loss after the cut, nats a token",
)
