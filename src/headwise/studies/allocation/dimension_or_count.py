"""Remove parameters of a trained layer by narrower heads or by fewer: which costs less?"""

from itertools import product

import numpy as np
import pandas as pd

from headwise.core.intervals import Interval
from headwise.lab.kinds.cut_layer import Cut
from headwise.lab.run import Run
from headwise.lab.study import (
    Claim,
    Conclusion,
    Figure,
    IntervalFigure,
    Study,
    Verdict,
    three_tiers,
)
from headwise.nets import DecoderShape
from headwise.studies.allocation import shared
from headwise.studies.cells import matching, mean
from headwise.training import TextTraining

KEPT = (0.25, 0.5, 0.75)
NOTHING_CUT = Verdict("not tested", "no cut was measured both ways")


def parts(shape: DecoderShape, training: TextTraining, seeds: int) -> dict[str, list[Run]]:
    """Every layer cut to every share, both ways."""
    task = shared.packaged_text(shape.length)
    cuts = [
        Cut(layer=layer, way=way, keep=keep)  # type: ignore[arg-type]
        for layer, way, keep in product(range(len(shape.layers)), ("dimension", "count"), KEPT)
    ]
    return {
        "cuts": shared.decoder_runs("cut-layer", task, shape, training, cuts, seeds),
        "training": shared.training_runs(shape, training, seeds),
    }


def quick_parts() -> dict[str, list[Run]]:
    """4 layers of 8 heads of 8, length 64."""
    training = TextTraining(steps=500, rate=0.004, batch=16, validation=64, evaluations=1)
    return parts(shared.uniform_decoder(4, 8, 8, 64), training, seeds=4)


def standard_parts() -> dict[str, list[Run]]:
    """6 layers of 8 heads of 16, length 128."""
    training = TextTraining(steps=600, rate=0.003, batch=16, evaluations=1)
    return parts(shared.uniform_decoder(6, 8, 16, 128), training, seeds=4)


def full_parts() -> dict[str, list[Run]]:
    """6 layers of 8 heads of 48, length 256."""
    training = TextTraining(steps=2000, rate=0.002, batch=16, evaluations=1)
    return parts(shared.uniform_decoder(6, 8, 48, 256), training, seeds=5)


def paired(results: pd.DataFrame) -> pd.DataFrame:
    """One row a layer, share and seed: the increases of the loss both ways."""
    nothing = pd.DataFrame(columns=["layer", "keep", "seed", "dimension", "count"])
    cuts = matching(results, part="cuts") & ~results["diverged"].to_numpy(bool)
    (*places, ways), errors = mean(results, ["layer", "keep", "seed", "way"], cuts)
    if not {"dimension", "count"} <= set(ways):
        return nothing
    both = [errors[..., list(ways).index(way)] for way in ("dimension", "count")]
    there = np.nonzero(~np.isnan(both).any(axis=0))
    at = {name: level[k] for name, level, k in zip(nothing, places, there, strict=False)}
    return pd.DataFrame({**at, "dimension": both[0][there], "count": both[1][there]})


def gaps(pairs: pd.DataFrame) -> pd.Series:
    """By layer: the mean of (increase by dimension) − (increase by count), nats a token."""
    return (pairs["dimension"] - pairs["count"]).groupby(pairs["layer"]).mean()


def gap_rows(results: pd.DataFrame) -> pd.DataFrame:
    """What a figure draws: narrowing minus removing, by layer and over all, with intervals."""
    pairs = paired(results)
    gap = (pairs["dimension"] - pairs["count"]).astype(float)
    rows = []
    for keep, here in pairs.groupby("keep"):
        panel = f"{100 * keep:.0f} % of a layer's parameters kept"
        for layer, of_layer in here.groupby("layer"):
            found = Interval.of(gap[of_layer.index])
            rows.append((f"layer {layer}", panel, "one layer", *_drawn(found)))
        found = Interval.of(gap[here.index].groupby(here["seed"]).mean())
        rows.append(("all layers", panel, "mean of the layers", *_drawn(found)))
    return pd.DataFrame(rows, columns=["label", "panel", "group", "mean", "low", "high", "seeds"])


def _drawn(found: Interval) -> tuple[float, float, float, int]:
    return found.mean, found.low, found.high, found.seeds


def dimension_is_cheaper(results: pd.DataFrame) -> Verdict:
    """In the mean over layers, shares and seeds, and in at least three quarters of the pairs."""
    pairs = paired(results)
    if pairs.empty:
        return NOTHING_CUT
    wins = float((pairs["dimension"] < pairs["count"]).mean())
    overall = Interval.of((pairs["dimension"] - pairs["count"]).groupby(pairs["seed"]).mean())
    seeds = f" over {overall.seeds} seeds" if overall.seeds > 1 else ""
    numbers = (
        f"narrowing minus removing heads, nats a token: {overall}{seeds}; less "
        f"in {100 * wins:.0f} % of {len(pairs)} pairs; {_by_layer(gaps(pairs))}"
    )
    decided = overall.mean, "narrowing minus removing heads, nats a token (bar 0)"
    if overall.sign == "not told apart":
        return Verdict("cannot tell", numbers, *decided)
    return Verdict.of(overall.mean < 0 and wins >= 0.75, numbers, *decided)


def in_every_layer(results: pd.DataFrame) -> Verdict:
    """Narrowing costs less in the mean of every layer."""
    pairs = paired(results)
    if pairs.empty:
        return NOTHING_CUT
    found = gaps(pairs)
    meaning = "the same in the layer where it is largest (bar 0)"
    return Verdict.of(bool((found < 0).all()), _by_layer(found), float(found.max()), meaning)


def later_layers_cost_less(results: pd.DataFrame) -> Verdict:
    """The second half of the layers against the first, at half the parameters, either way."""
    pairs = paired(results)
    half = pairs[np.isclose(pairs["keep"].astype(float), 0.5)]
    if half.empty:
        return NOTHING_CUT
    by_layer = half[["dimension", "count"]].min(axis=1).groupby(half["layer"]).mean()
    middle = len(by_layer) / 2
    early, late = by_layer[by_layer.index < middle], by_layer[by_layer.index >= middle]
    numbers = ", ".join(f"layer {i}: {value:.4f}" for i, value in by_layer.items())
    return Verdict.of(
        bool(late.mean() < early.mean()),
        f"nats a token lost with half of a layer's parameters, the cheaper way: {numbers}",
        float(late.mean() - early.mean()),
        "loss of the later half minus that of the earlier half, nats a token (bar 0)",
    )


def _by_layer(found: pd.Series) -> str:
    return ", ".join(f"layer {index}: {gap:+.4f}" for index, gap in found.items())


def finding(results: pd.DataFrame) -> Conclusion:
    """Which way costs less, if the seeds can tell."""
    pairs = paired(results)
    if pairs.empty:
        return Conclusion("Inconclusive: nothing was cut yet.", None, "running the study")
    wins = float((pairs["dimension"] < pairs["count"]).mean())
    overall = Interval.of((pairs["dimension"] - pairs["count"]).groupby(pairs["seed"]).mean())
    numbers = (
        f"{overall} nats a token in the mean, and less in {100 * wins:.0f} % of {len(pairs)} cuts"
    )
    if overall.sign == "not told apart":
        why = "the interval holds zero" if overall.seeds > 1 else "one seed cannot tell"
        return Conclusion(
            f"Inconclusive: narrowing heads minus removing heads costs {numbers}; {why}.",
            None,
            "more seeds (a larger tier)",
        )
    says = "less" if overall.sign == "better" else "more"
    better = int((gaps(pairs) < 0).sum())
    return Conclusion(
        f"Narrowing heads costs {says} than removing some: {numbers}.", better, answer=says
    )


PRICES = (
    "about 170 CPU-seconds: 2 minutes on two cores",
    "about 30 CPU-minutes: 600 steps",
    "about 14 CPU-hours (estimated): width 384, length 256",
)

DIMENSION_OR_COUNT = Study(
    name="dimension-or-count",
    title="Narrower heads or fewer: which loses less?",
    question="At equal parameters, does a trained layer lose less by narrowing its heads or by "
    "removing some?",
    paper=shared.PAPER,
    tiers=three_tiers(PRICES, quick_parts, standard_parts, full_parts),
    parts={
        "cuts": "One layer cut to a share of its parameters, without retraining",
        "training": "Decoders to cut",
    },
    claims=(
        Claim(
            "Reducing head dimension costs less than reducing head count at equal parameters: in "
            "the mean, and in three of four cuts",
            "2510.03784",
            dimension_is_cheaper,
        ),
        Claim("It does so in every layer", "headwise", in_every_layer),
        Claim("Later layers can do with fewer parameters", "2510.03784", later_layers_cost_less),
    ),
    figures=(
        IntervalFigure(
            name="gap",
            title="Narrowing minus removing heads: left of zero, narrowing costs less",
            caption="Difference of the held-out losses on the same trained layer; bars: 95 % "
            "intervals over seeds.",
            axis="difference of the losses, nats a token",
            data=gap_rows,
            zero=True,
            ordered=True,
        ),
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
        "Nothing is trained after a cut. An increase is what was measured; noise can make it "
        "negative.",
        "Quick: 4 layers of 8 heads of 8, length 64, 500 steps. Standard: 6 × 8 heads of 16, "
        "length 128, 600 steps. Full: 6 × 8 heads of 48, length 256, 2000 steps.",
    ),
    setting=("layer", "way", "keep"),
    rows=("layer", "way"),
    columns="keep",
    preparing=("training",),
    score="mean",
    paired=True,
)
