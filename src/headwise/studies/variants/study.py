"""The study `variants`: retrieval, neighbours and induction by every variant and model."""

from typing import Any

import pandas as pd

from headwise.core.intervals import Interval
from headwise.lab.study import Figure, IntervalFigure, Study, three_tiers
from headwise.studies.variants import claims, models
from headwise.studies.variants.claims import prediction
from headwise.studies.variants.tiers import full_parts, quick_parts, standard_parts
from headwise.studies.variants.transition import FALL


def times(results: pd.DataFrame) -> pd.DataFrame:
    """Processor time of a step with D units (a band: D each), by model and engine.

    Networks trained as one program were timed together: that is one measurement, not one a seed.
    """
    banded = results["model"].str.startswith("banded")
    enough = results["intrinsic_dim"] * banded.map({True: models.BANDS, False: 1})
    here = (results["part"] == "heads") & (results["intrinsic_dim"] == 4)
    rows = results[here & (results["units"] == enough)]
    rows = rows.drop_duplicates(["model", "cpu_seconds"])
    found = []
    for (model, engine), here in rows.groupby(["model", "engine"]):
        each = Interval.of((1e3 * here["cpu_seconds"] / here["steps"]).to_numpy(float))
        found.append(
            {
                "label": model,
                "panel": "D = 4, T = 32",
                "group": engine,
                "mean": each.mean,
                "low": each.low,
                "high": each.high,
                "seeds": each.seeds,
            }
        )
    return pd.DataFrame(found)


def at_dim(ours: pd.DataFrame) -> pd.DataFrame:
    """For a figure: a line where the units reach D."""
    panels = ours[["part", "model", "intrinsic_dim", "length"]].dropna().drop_duplicates()
    return pd.DataFrame(
        [
            {"part": row.part, "units": int(row.intrinsic_dim), "intrinsic_dim": row.intrinsic_dim,
             "model": row.model, "length": row.length, "label": f"D = {row.intrinsic_dim:.0f}"}
            for row in panels.itertuples()
        ]
    )  # fmt: skip


def beside_plain(ours: pd.DataFrame) -> pd.DataFrame:
    """For a figure with a panel a variant: plain heads with D = 4, in every other panel."""
    plain = ours[(ours["model"] == "plain") & (ours["intrinsic_dim"] == 4)]
    columns = ["part", "intrinsic_dim", "length", "units", "error_min"]
    others = [model for model in ours["model"].unique() if model != "plain"]
    copies = [plain[columns].assign(model=model, label="plain, D = 4") for model in others]
    return pd.concat(copies) if copies else pd.DataFrame()


def _against_units(
    name: str, title: str, caption: str, panels: dict[str, str], colour: str = "model", **more: Any
) -> Figure:
    """The smallest error against heads or their like, a line a model unless told, a rule at D."""
    return Figure(
        name, title, f"{SMALLEST} {caption}", panels, "units", colour, notes=at_dim, **more
    )


def _at(dim: int) -> int:
    return dim


TITLES = {
    "plain": "Plain",
    "talking": "Talking",
    "gated": "Gated",
    "differential": "Differential",
    "mixture": "Mixture",
    "top-k:4": "Top 4",
    "grouped:2": "Grouped, 2 groups",
    "grouped:1": "Multi-query: 1 group",
    "banded:2": "Banded, 2 bands",
    "linear": "Linear",
    "window:16": "Window of 16",
}
"""What the panels of variants are called, in their order: those like plain heads first."""

SMALLEST = "Smallest validation NMSE over seeds"
PRICES = (
    "about 10 CPU-minutes",
    "about 42 CPU-minutes",
    "about 6 CPU-hours (estimated)",
)

VARIANTS = Study(
    name="variants",
    title="What does a head buy in each attention, and in each sequence model?",
    question="How many heads, channels or numbers of state do D features cost, by model?",
    tiers=three_tiers(PRICES, quick_parts, standard_parts, full_parts),
    parts={
        "heads": "D features of a whole sequence, T = 32",
        "lengths": "Other lengths, D = 4",
        "positions": "Features of parts of the sequence, D = 4, T = 32",
        "rank": "Nearest of 8 points in dimension 8, heads of rank 1 and 8",
        "induction": "Induction: find the previous occurrence, copy what followed",
    },
    claims=(
        prediction(
            "Multi-query and grouped heads: the transition is at D query heads, not D groups",
            "a query head is one score direction in keys that can hold D of them",
            claims.falls_at(("grouped:1", "grouped:2"), _at),
        ),
        prediction(
            "Talking heads: the transition on retrieval stays at D heads",
            "D maxima take D softmax rows, however they are mixed",
            claims.falls_at(("talking",), _at),
        ),
        prediction(
            "Talking heads close most of the gap between rank 1 and full rank",
            "mixed scores of rank-1 heads are forms of rank up to the number of heads",
            claims.mixing_repairs_rank,
        ),
        prediction(
            "Grouped heads do not repair rank",
            "a shared key map leaves a head's form at its rank",
            claims.grouping_keeps_rank,
        ),
        prediction(
            f"Banded heads need D heads a band: with {models.BANDS} bands, {models.BANDS}·D",
            "a feature over all positions needs a head in every band",
            claims.falls_at((f"banded:{models.BANDS}",), lambda dim: models.BANDS * dim),
        ),
        prediction(
            "A sliding window shorter than the sequence shows no transition",
            "no head sees the tokens before the window",
            claims.never_falls(("window:16",)),
        ),
        prediction(
            "Top-k heads need D heads, as plain ones",
            "the extremum is among the k largest scores",
            claims.falls_at(("top-k:4",), _at),
        ),
        prediction(
            "A mixture of heads needs D active heads, however many it has",
            "the class token's query is the same for every input, so the same heads are active",
            claims.falls_at(("mixture",), _at),
        ),
        prediction(
            "Gating does not replace heads",
            "a gate scales what was read; it reads nothing more",
            claims.falls_at(("gated",), _at),
        ),
        prediction(
            "The two maps of a differential head count as one: the transition is at D heads",
            "both maps share a value map, and their difference is one vector",
            claims.falls_at(("differential",), _at),
        ),
        prediction(
            "Linear attention shows no transition",
            "its weights cannot sharpen to an extremum",
            claims.never_falls(("linear",)),
        ),
        prediction(
            "The error of a GRU is larger below D numbers of state, and grows with the length",
            "a running maximum is a number of state a feature, updated at every token",
            claims.state_and_length,
        ),
        prediction(
            "D channels of max pooling are as good as D heads; of mean pooling they are not",
            "D maxima are the target by construction; a mean must hold the whole sequence",
            claims.ceiling_and_floor,
        ),
        prediction(
            "The transition does not move with the length: plain at D, banded at D × bands",
            "what a head cannot read in one place, no length of the sequence changes",
            claims.steady_in_length,
        ),
        prediction(
            "Where features look at parts of the sequence, the transition is at D heads too",
            "a head's score may depend on the position as on the content",
            claims.falls_at(("plain", "talking", "gated", "differential"), _at, claims.PARTS),
        ),
        prediction(
            "Induction takes two layers in every variant, and two suffice",
            "what is looked for and what is copied stand at different places",
            claims.depth_is_needed,
        ),
    ),
    figures=(
        _against_units(
            "heads",
            "What D features cost, by variant of a head",
            "against active heads; a panel a variant, a line a number D of features, a rule where "
            "the heads are as many.",
            {"heads": "T = 32"},
            colour="intrinsic_dim",
            facet="model",
            facet_titles=TITLES,
            references=beside_plain,
            only=("model", models.has_heads),
        ),
        _against_units(
            "models",
            "What D features cost without heads",
            "against channels or numbers of state, with plain heads beside them.",
            {"heads": "T = 32"},
            facet="intrinsic_dim",
            only=("model", models.is_plain_or_without_heads),
        ),
        Figure(
            name="parameters",
            title="The same against parameters",
            caption=f"{SMALLEST} against all parameters of the network.",
            panels={"heads": "T = 32"},
            x="params",
            colour="model",
            x_log=True,
            facet="intrinsic_dim",
        ),
        _against_units(
            "lengths",
            "Does the transition move with the length?",
            "with D = 4; a panel a length (T = 32: above).",
            {"lengths": "D = 4"},
            facet="length",
        ),
        _against_units(
            "positions",
            "Features of parts of the sequence",
            "with D = 4, T = 32, positions one-hot.",
            {"positions": "S_i half of the sequence"},
        ),
        IntervalFigure(
            name="time",
            title="Measured time of a training step",
            caption="Processor time a network with D units, batch 32; where networks were timed "
            "one by one, the mean with its 95 % interval.",
            axis="processor time a step, ms",
            data=times,
        ),
    ),
    finding=claims.finding,
    setting=("model", "units", "length", "intrinsic_dim", "rank", "layers", "params"),
    rows=("model", "intrinsic_dim"),
    columns="units",
    notes=(
        "Targets: Σ_i max_t ⟨a_i, x(t)⟩ with orthonormal a_i on Gaussian tokens of dimension 6. "
        "The network is the head-count paper's (embedding and readout of width 32, 8 dimensions a "
        "head) with the variant, or another model, in the place of its heads.",
        "Training: AdamW, 2 % warm-up and cosine, gradient norm clipped at 1, batch 32, on 8000 "
        "fixed sequences: 16,000 steps at rate .002 of heads that the kernel has itself (linear "
        "ones aside), 4,000 at .005 of all else; neighbours and induction on fresh sequences, "
        "batch 64.",
        "A transition is the step of a sweep with the largest fall of the smallest error over "
        f"seeds, if that is {FALL:.0f}× or more; its interval holds 95 % of resamples of the "
        "seeds.",
        "At one layer the class token's query is the same for every input: a mixture's router "
        "picks its heads once and for all there, and a gate is a constant factor.",
        "Units are active heads, channels, or numbers of state (of a state-space layer complex "
        "ones); a mixture has 8 heads, one of them shared. Networks of different models with equal "
        "units differ in parameters: see the figure against parameters.",
    ),
)
