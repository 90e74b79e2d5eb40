"""Does softmax forgive low rank, and the more the longer the sequence? Rows and outputs apart."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from headwise.lab.kinds.watched_attention import Watch
from headwise.lab.run import Run
from headwise.lab.study import Claim, Conclusion, Figure, Study, Verdict, three_tiers
from headwise.nets import DecoderShape
from headwise.studies.allocation import shared
from headwise.studies.cells import matching, mean
from headwise.training import TextTraining

WEIGHTS: tuple[Any, ...] = ("trained", "random", "independent")
FALLS = -0.05  # powers of the length above this are no fall: 3 % when the length doubles
CLEAR = 0.9  # a later half whose change is above this share of the earlier half's is not less
TOO_FEW = Verdict("not tested", "no two lengths were measured")


def parts(
    shape: DecoderShape,
    training: TextTraining,
    ranks: tuple[int, ...],
    lengths: tuple[int, ...],
    seeds: int,
) -> dict[str, list[Run]]:
    """Every rank at every length; that values are independent does not change rows."""
    task = shared.packaged_text(shape.length)

    def runs(what: Any, kinds: tuple[Any, ...]) -> list[Run]:
        watches = [
            Watch(weights=weights, rank=rank, length=length, what=what)
            for weights, rank, length in product(kinds, ranks, lengths)
        ]
        return shared.decoder_runs("watched-attention", task, shape, training, watches, seeds)

    trained = shared.training_runs(shape, training, seeds)
    rows, outputs = runs("rows", WEIGHTS[:2]), runs("outputs", WEIGHTS)
    return {"rows": rows, "outputs": outputs, "training": trained}


def quick_parts() -> dict[str, list[Run]]:
    """4 layers of 4 heads of 16, length 256."""
    training = TextTraining(steps=400, rate=0.004, batch=4, validation=16, evaluations=1)
    shape = shared.uniform_decoder(4, 4, 16, 256)
    return parts(shape, training, (1, 2, 4, 8), (16, 32, 64, 128, 256), seeds=4)


def standard_parts() -> dict[str, list[Run]]:
    """6 layers of 4 heads of 32, length 512."""
    training = TextTraining(steps=500, rate=0.003, batch=4, validation=16, evaluations=1)
    shape = shared.uniform_decoder(6, 4, 32, 512)
    return parts(shape, training, (1, 2, 4, 8, 16), (16, 32, 64, 128, 256, 512), seeds=4)


def full_parts() -> dict[str, list[Run]]:
    """6 layers of 6 heads of 64, length 1024."""
    training = TextTraining(steps=4000, rate=0.002, batch=4, validation=16, evaluations=1)
    shape = shared.uniform_decoder(6, 6, 64, 1024)
    return parts(shape, training, (1, 2, 4, 8, 16, 32), (16, 64, 256, 1024), seeds=5)


def slopes(results: pd.DataFrame, part: str) -> pd.DataFrame:
    """By weights and rank: the power of the length with which the error goes."""
    columns = ["weights", "rank", "length"]
    here = matching(results, part=part) & (results["error"].to_numpy(float) > 0)
    logs = results.loc[here, columns].assign(log=np.log(results["error"].to_numpy(float)[here]))
    (kinds, ranks, lengths), means = mean(logs, columns, np.ones(len(logs), bool), "log")
    rows = []
    for (which, weights), (at, rank) in product(enumerate(kinds), enumerate(ranks)):
        known = ~np.isnan(means[which, at])
        if known.sum() > 1:
            line = np.polyfit(np.log(lengths[known].astype(float)), means[which, at, known], 1)
            rows.append((weights, int(rank), float(line[0])))
    return pd.DataFrame(rows, columns=["weights", "rank", "power"])


def _falls(results: pd.DataFrame, part: str, kinds: tuple[str, ...]) -> Verdict:
    found = slopes(results, part)
    found = found[found["weights"].isin(kinds)]
    if found.empty:
        return TOO_FEW
    means = found.groupby("weights")["power"].agg(["min", "max"])
    numbers = ", ".join(
        f"{weights}: length^{_signed(row['min'])} to length^{_signed(row['max'])}"
        for weights, row in means.iterrows()
    )
    largest = float(found["power"].max())
    return Verdict.of(largest < FALLS, numbers, largest, f"largest power (bar {FALLS:g})")


def _signed(power: float) -> str:
    return f"{power:+.2f}".replace("-", "−")


def rows_fall(results: pd.DataFrame) -> Verdict:
    """Of trained and of random weights."""
    return _falls(results, "rows", ("trained", "random"))


def outputs_fall(results: pd.DataFrame) -> Verdict:
    """Of trained weights, at every rank."""
    return _falls(results, "outputs", ("trained",))


def outputs_fall_less(results: pd.DataFrame) -> Verdict:
    """The paper's argument is about rows; what a layer passes on is outputs."""
    rows, outputs = slopes(results, "rows"), slopes(results, "outputs")
    both = rows.merge(outputs, on=["weights", "rank"], suffixes=("_rows", "_outputs"))
    both = both[both["weights"] == "trained"]
    if both.empty:
        return TOO_FEW
    less = float((both["power_outputs"] - both["power_rows"]).min())
    return Verdict.of(
        less > 0,
        f"trained weights: rows go with length^{_signed(both['power_rows'].mean())}, outputs with "
        f"length^{_signed(both['power_outputs'].mean())}, in the mean over ranks",
        less,
        "the outputs' power minus the rows', where it is least (bar 0)",
    )


def certificate_holds(results: pd.DataFrame) -> Verdict:
    """No row moved further than tanh(ε/2) allows."""
    if "excess" not in results or results["excess"].dropna().empty:
        return TOO_FEW
    worst = float(results["excess"].max())
    watched = results[results["part"] == "rows"]
    kinds = watched.groupby("weights")[["shift", "bound"]].mean()
    numbers = ", ".join(
        f"{weights}: {row['shift']:.3f} of at most {row['bound']:.3f}"
        for weights, row in kinds.iterrows()
    )
    return Verdict.of(
        worst <= 1e-9,
        f"mean total variation, in the layer where it is largest: {numbers}",
        worst,
        "how far a row moved beyond its certificate, at most (bar 1e-9)",
    )


def later_layers_saturate_more(results: pd.DataFrame) -> Verdict:
    """Outputs of the trained decoders: the later half of the layers against the earlier half."""
    found = results[(results["part"] == "outputs") & (results["weights"] == "trained")]
    columns = sorted(column for column in found.columns if column.startswith("layer_"))
    if found.empty or not columns:
        return TOO_FEW
    means = found[columns].mean()
    middle = len(columns) // 2
    ratio = float(means.iloc[middle:].mean() / means.iloc[:middle].mean())
    numbers = ", ".join(f"{name[6:]}: {value:.3f}" for name, value in means.items())
    return Verdict.of(
        ratio < CLEAR,
        f"mean change of the output by layer: {numbers}",
        ratio,
        f"the later half's over the earlier half's (bar {CLEAR:g})",
    )


def finding(results: pd.DataFrame) -> Conclusion:
    """Do rows move less at a greater length, and do outputs?"""
    rows, outputs = rows_fall(results), outputs_fall(results)
    if "not tested" in (rows.status, outputs.status):
        return Conclusion("Inconclusive: too little was measured.", None, "running the study")
    first = "moves less" if rows.status == "holds" else "does not always move less"
    second = "its output too" if outputs.status == "holds" else "its output hardly does"
    says = "Yes" if outputs.status == "holds" else "Hardly"
    return Conclusion(
        f"{says}: with longer sequences a rank-reduced head's attention row {first}, {second} ("
        f"{outputs_fall_less(results).numbers}).",
        int(outputs.status == "holds"),
    )


def _figure(part: str, title: str, kinds: str) -> Figure:
    return Figure(
        name=part,
        title=title,
        caption=f"Change against the length of the sequence; a line a rank, a panel for {kinds}.",
        panels={part: part},
        x="length",
        colour="rank",
        x_log=True,
        facet="weights",
        facet_titles={
            "trained": "trained weights",
            "random": "random weights",
            "independent": "random weights, values that are noise",
        },
    )


PRICES = (
    "about 230 CPU-seconds: 2 minutes on two cores",
    "about 20 CPU-minutes: 500 steps",
    "about 40 CPU-hours (estimated): width 384, length 1024",
)

SATURATION = Study(
    name="saturation",
    title="Does a long sequence forgive heads of low rank?",
    question="How far do attention rows and outputs of rank-reduced heads move, over rank × "
    "length, on trained and on random weights?",
    paper=shared.PAPER,
    tiers=three_tiers(PRICES, quick_parts, standard_parts, full_parts),
    parts={
        "rows": "Attention rows: Euclidean distance",
        "outputs": "Heads' outputs: distance / spread of the values",
        "training": "Decoders to watch",
    },
    claims=(
        Claim("The change of the attention row falls with the length", "2510.03784", rows_fall),
        Claim("On trained weights the change of the output falls, too", "headwise", outputs_fall),
        Claim("The change of the output falls less than the row's", "headwise", outputs_fall_less),
        Claim("No row breaks the certificate tanh(ε/2)", "headwise", certificate_holds, exact=True),
        Claim("Later layers saturate more", "2510.03784", later_layers_saturate_more),
    ),
    figures=(
        _figure(
            "rows",
            "How far attention rows move when heads are cut to a rank",
            "trained weights and for random ones",
        ),
        _figure(
            "outputs",
            "How far outputs move when heads are cut to a rank",
            "trained weights, random ones, and random ones with values that are noise",
        ),
    ),
    finding=finding,
    notes=(
        shared.TEXT_NOTE,
        shared.CUT_NOTE,
        "Rows are those of the last quarter of the positions, which see nearly all keys. Queries "
        "and keys are cut, values are not.",
        "Quick: 4 layers of 4 heads of 16, trained at length 256 for 400 steps. Standard: 6 × 4 "
        "heads of 32, length 512, 500 steps. Full: 6 × 6 heads of 64, length 1024, 4000 steps.",
    ),
    setting=("weights", "rank", "length"),
    rows=("weights", "rank"),
    columns="length",
    preparing=("training",),
    score="mean",
    paired=True,
)
