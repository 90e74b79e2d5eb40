"""Figures about what a network confuses: one witness, and witnesses over the number of heads."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.build import Witness, WitnessComparison
from headwise.report.theme import BLUE, GREEN, ORANGE, finished

_ROUNDING = 1e-9  # a forced error below this is none


def draw_witness(found: Witness) -> alt.TopLevelMixin:
    """The error that the pair forces, over the Lipschitz constant that a readout may have."""
    own = found.readout_lipschitz
    harmless = min(found.forced_lipschitz(0.0), 1e9 * own)  # from here on nothing is forced
    constants = np.geomspace(own / 10, 2 * max(own, harmless), 201)
    line = pd.DataFrame(
        {"lipschitz": constants, "forced": [found.forced_error(float(c)) for c in constants]}
    )
    here = pd.DataFrame({"lipschitz": [own], "error": [found.network_error]})
    x = alt.X(
        "lipschitz:Q",
        title="Lipschitz constant of the readout",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format=".0e", tickCount=6),
    )
    forced = (
        alt.Chart(line)
        .mark_line(color=ORANGE, strokeWidth=2)
        .encode(x=x, y=alt.Y("forced:Q", title="error on one of the two inputs"))
    )
    network = alt.Chart(here).mark_point(color=BLUE, size=90, filled=True, opacity=1)
    return finished(
        alt.layer(forced, network.encode(x=x, y="error:Q")).properties(width=420, height=260),
        "Two inputs that look alike after attention",
        [
            f"Targets {found.target_gap:.4g} apart, representations "
            f"{found.representation_gap:.3g} apart.",
            "Orange: the error that every such readout makes; blue: the network's own.",
        ],
    )


def draw_comparison(found: WitnessComparison) -> alt.TopLevelMixin:
    """The error that the witness forces next to the trained one, over the number of heads."""
    rows, task = found.to_pandas(), found.task
    groups = rows["group"].drop_duplicates().tolist()
    kinds = rows["kind"].drop_duplicates().tolist()
    y_axis = alt.Axis(format=".0e", values=[10.0**power for power in range(-12, 4)])
    base = alt.Chart(rows[rows["relative"] > _ROUNDING]).encode(
        x=alt.X("heads:O", title="attention heads h", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(
            "relative:Q",
            title="error / standard deviation of the target",
            scale=alt.Scale(type="log"),
            axis=y_axis,
        ),
        color=alt.Color(
            "kind:N",
            title="error",
            sort=kinds,
            scale=alt.Scale(domain=kinds, range=[ORANGE, BLUE, GREEN]),
            legend=alt.Legend(labelLimit=400),
        ),
        detail="group:N",
        tooltip=["group", "heads", "kind", alt.Tooltip("relative", format=".3g"), "error"],
    )
    lines = base.mark_line(strokeWidth=2)
    points = base.mark_point(size=80, filled=True, opacity=1).encode(
        shape=alt.Shape(
            "group:N",
            title="network",
            sort=groups,
            scale=alt.Scale(domain=groups, range=["circle", "diamond"][: len(groups)]),
        )
    )
    return finished(
        alt.layer(lines, points).properties(width=340, height=300),
        "Too few heads: two inputs that no readout can tell apart",
        [
            f"y = Σ of {task.intrinsic_dim} maxima, T = {task.length}. Forced: the error that "
            "every readout with the network's own bound on",
            "the Lipschitz constant makes on one of the two inputs found. Where nothing is forced "
            "there is no mark.",
        ],
    )
