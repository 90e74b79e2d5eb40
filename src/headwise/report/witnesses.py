"""Figures about what a network confuses: one witness, and witnesses over the number of heads."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.build import Witness, WitnessComparison
from headwise.report.theme import BLUE, GREEN, GREY, ORANGE, decades, finished, panel_title
from headwise.theory.bound import rounded_up

_WIDTH, _HEIGHT = 330, 230
_ROUNDING = 1e-9  # a forced error below this is none


def draw_witness(found: Witness) -> alt.TopLevelMixin:
    """The two inputs, what attention makes of them, their targets, and the error that is forced."""
    panels = [panel.properties(title=panel_title(n)) for n, panel in witness_panels(found).items()]
    return finished(
        alt.concat(*panels, columns=2),
        witness_title(found),
        witness_caption(found),
    )


def witness_caption(found: Witness) -> list[str]:
    """How to read the panels."""
    return [
        f"Targets {found.target_gap:.4g} apart, representations "
        f"{rounded_up(found.representation_gap, 3)} apart.",
        "Last panel, orange: the error that every readout of that constant makes on one of "
        "the two; blue: the network's own.",
    ]


def witness_title(found: Witness) -> str:
    """What the pair shows, with the constant up to which it holds."""
    constant = found.readout_lipschitz
    return f"Two inputs that no readout with Lipschitz constant up to {constant:.3g} tells apart"


def witness_panels(found: Witness) -> dict[str, alt.LayerChart | alt.Chart]:
    """A chart a panel, by its title."""
    return {
        "The two inputs: every coordinate of every token": _inputs(found),
        "After attention: all that a readout sees": _representations(found),
        "What they should give": _targets(found),
        "The error that is forced, by the readout's Lipschitz constant": _forced(found),
    }


def _numbered(name: str, title: str, count: int) -> alt.X:
    """An axis of whole numbers from 0, with room at its ends: marks do not stand on the frame."""
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    axis = alt.Axis(grid=False, tickMinStep=1, format="d")
    return alt.X(f"{name}:Q", title=title, scale=scale, axis=axis)


def _which() -> alt.Color:
    return alt.Color(
        "input:N", title=None, scale=alt.Scale(domain=["first", "second"], range=[BLUE, ORANGE])
    )


def input_rows(found: Witness) -> pd.DataFrame:
    """The two inputs, a row a coordinate."""
    rows = [
        {"input": name, "position": place, "coordinate": index, "value": float(value)}
        for name, tokens in (("first", found.first), ("second", found.second))
        for place, token in enumerate(tokens)
        for index, value in enumerate(token)
    ]
    return pd.DataFrame(rows)


def _inputs(found: Witness) -> alt.Chart:
    base = alt.Chart(input_rows(found)).mark_point(filled=True, opacity=0.9, size=35)
    return base.encode(
        x=_numbered("position", "position t", len(found.first)),
        y=alt.Y("value:Q", title="coordinate"),
        color=_which(),
        shape=alt.Shape("input:N", title=None, scale=alt.Scale(domain=["first", "second"])),
        tooltip=["input", "position", "coordinate", alt.Tooltip("value", format=".3g")],
    ).properties(width=_WIDTH, height=_HEIGHT)


def _representations(found: Witness) -> alt.Chart:
    rows = [
        {"input": name, "dimension": index, "value": float(value)}
        for name, row in zip(("first", "second"), found.representations, strict=True)
        for index, value in enumerate(row)
    ]
    base = alt.Chart(pd.DataFrame(rows)).mark_point(opacity=0.9, size=45, strokeWidth=2)
    return base.encode(
        x=_numbered("dimension", "dimension", len(found.representations[0])),
        y=alt.Y("value:Q", title="after attention"),
        color=_which(),
        shape=alt.Shape("input:N", title=None, scale=alt.Scale(domain=["first", "second"])),
        tooltip=["input", "dimension", alt.Tooltip("value", format=".6g")],
    ).properties(width=_WIDTH, height=_HEIGHT)


def _targets(found: Witness) -> alt.LayerChart:
    rows = pd.DataFrame(
        {"input": ["first", "second"], "target": [float(value) for value in found.targets]}
    )
    base = alt.Chart(rows).encode(
        x=alt.X("input:N", title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("target:Q", title="target"),
        tooltip=["input", alt.Tooltip("target", format=".4g")],
    )
    bars = base.mark_bar(width=60).encode(color=_which())
    words = base.mark_text(dy=-9, fontSize=14, color=GREY).encode(
        text=alt.Text("target:Q", format=".3f")
    )
    chart = alt.layer(bars, words.properties(name="note_target"))
    return chart.properties(width=_WIDTH, height=_HEIGHT)


def _forced(found: Witness) -> alt.LayerChart:
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
        axis=decades(-12, 12),
    )
    y = alt.Y("forced:Q", title="error on one of the two")
    forced = alt.Chart(line).mark_line(color=ORANGE, strokeWidth=2.5).encode(x=x, y=y)
    network = alt.Chart(here).mark_point(color=BLUE, size=90, filled=True, opacity=1)
    word = alt.Chart(here).mark_text(color=GREY, fontSize=14, align="left", dx=10)
    named = word.encode(x=x, y="error:Q", text=alt.value("this network")).properties(
        name="note_network"
    )
    chart = alt.layer(forced, network.encode(x=x, y="error:Q"), named)
    return chart.properties(width=_WIDTH, height=_HEIGHT)


def draw_comparison(found: WitnessComparison) -> alt.TopLevelMixin:
    """The error that the witness forces next to the trained one, over the number of heads."""
    rows, task = found.to_pandas(), found.task
    groups = rows["group"].drop_duplicates().tolist()
    kinds = rows["kind"].drop_duplicates().tolist()
    y_axis = decades(-12, 3)
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
        "Too few heads: the error that no readout of the network's Lipschitz constant avoids",
        [
            f"{task.intrinsic_dim} features, T = {task.length}. Forced: what every readout with a "
            "Lipschitz constant up to the network's own",
            "errs by on one of the two inputs found. Where nothing is forced there is no mark.",
        ],
    )
