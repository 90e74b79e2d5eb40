"""Figures about what a network confuses: one witness, and witnesses over the number of heads."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.build import Witness, WitnessComparison
from headwise.report.lines.switches import colours_of, shown_of, with_switches
from headwise.report.theme import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    decades,
    finished,
    logarithmic,
    panel_title,
    told,
)
from headwise.theory.bound import rounded_down, rounded_up

_WIDTH, _HEIGHT = 330, 230
_TICKS = 12  # about so many numbers are named on an axis
_ROUNDING = 1e-9  # a forced error below this is none
_UPRIGHT = alt.Axis(labelAngle=0)


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
        f"Targets {rounded_down(found.target_gap)} apart, representations "
        f"{rounded_up(found.representation_gap, 3)} apart.",
        "Last panel, orange: the error that every readout of that constant makes on one of "
        "the two; blue: the network's own.",
    ]


def witness_title(found: Witness) -> str:
    """What the pair shows, with the constant up to which it holds."""
    constant = rounded_down(found.readout_lipschitz, 3)
    return f"Two inputs that no readout with Lipschitz constant up to {constant} tells apart"


def witness_panels(found: Witness, for_page: bool = False) -> dict[str, alt.TopLevelMixin]:
    """A chart a panel, by its title; on a page the legend is the page's."""
    panels = {
        "The two inputs: every coordinate of every token": _inputs(found, for_page),
        "After attention: all that a readout sees": _representations(found, for_page),
        "What they should give": _targets(found, for_page),
        "The error that is forced, by the readout's Lipschitz constant": _forced(found),
    }
    return {title: with_switches(panel, for_page) for title, panel in panels.items()}


def _numbered(name: str, title: str, count: int) -> alt.X:
    """An axis of whole numbers from 0, with room at its ends: marks do not stand on the frame."""
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    ticks = list(range(0, count, max(1, count // _TICKS)))
    axis = alt.Axis(grid=False, values=ticks, format="d")
    return alt.X(f"{name}:Q", title=title, scale=scale, axis=axis)


INPUT_COLOURS = {"first": BLUE, "second": ORANGE}
"""The colour of each of the two inputs."""


def _which(for_page: bool) -> dict[str, alt.Color | alt.Shape]:
    """The channels that tell the two inputs apart."""
    shown = None if for_page else alt.Legend()
    shapes = alt.Scale(domain=list(INPUT_COLOURS))
    return {
        "color": colours_of("input:N", INPUT_COLOURS, None, shown),
        "shape": alt.Shape("input:N", title=None, scale=shapes, legend=shown),
    }


def witness_rows(found: Witness) -> pd.DataFrame:
    """All numbers of the pair: every coordinate of its tokens, what attention makes, the targets.

    `of` says which it is; `position` is a token's, and `dimension` counts what has several.
    """
    pairs = zip(INPUT_COLOURS, (found.first, found.second), strict=True)
    rows: list[tuple[str, str, int | None, int | None, float]] = [
        (name, "token", place, index, float(value))
        for name, tokens in pairs
        for place, token in enumerate(tokens)
        for index, value in enumerate(token)
    ]
    rows += [
        (name, "after attention", None, index, float(value))
        for name, row in zip(INPUT_COLOURS, found.representations, strict=True)
        for index, value in enumerate(row)
    ]
    rows += [
        (name, "target", None, None, float(value))
        for name, value in zip(INPUT_COLOURS, found.targets, strict=True)
    ]
    columns = ["input", "of", "position", "dimension", "value"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:4], "Int64"))


def side_by_side(rows: pd.DataFrame, of: str) -> pd.DataFrame:
    """A row a number of that kind: the first input's, the second's, and how far they are apart."""
    here = rows[rows["of"] == of].dropna(axis=1, how="all").drop(columns="of")
    places = [name for name in ("position", "dimension") if name in here]
    both = here.pivot(index=places, columns="input", values="value").reset_index()
    return both.rename_axis(columns=None).assign(apart=(both["first"] - both["second"]).abs())


def _rows(found: Witness, of: str) -> pd.DataFrame:
    """Of one kind, and without what that kind does not have."""
    rows = witness_rows(found)
    return rows[rows["of"] == of].drop(columns="of").dropna(axis=1)


def _inputs(found: Witness, for_page: bool) -> alt.Chart:
    rows = _rows(found, "token").rename(columns={"dimension": "coordinate"})
    base = shown_of(alt.Chart(rows), "input", for_page).mark_point(filled=True, opacity=1, size=50)
    return base.encode(
        **_which(for_page),
        x=_numbered("position", "position t", len(found.first)),
        y=alt.Y("value:Q", title="coordinate"),
        tooltip=["input", "position", "coordinate", alt.Tooltip("value", format=".3g")],
    ).properties(width=_WIDTH, height=_HEIGHT)


def _representations(found: Witness, for_page: bool) -> alt.Chart:
    rows = _rows(found, "after attention")
    base = shown_of(alt.Chart(rows), "input", for_page)
    return (
        base.mark_point(opacity=1, size=45, strokeWidth=2)
        .encode(
            **_which(for_page),
            x=_numbered("dimension", "dimension", len(found.representations[0])),
            y=alt.Y("value:Q", title="after attention"),
            tooltip=["input", "dimension", alt.Tooltip("value", format=".6g")],
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )


def _targets(found: Witness, for_page: bool) -> alt.LayerChart:
    rows = _rows(found, "target").rename(columns={"value": "target"})
    places = alt.Scale(domain=list(INPUT_COLOURS))
    base = shown_of(alt.Chart(rows), "input", for_page).encode(
        x=alt.X("input:N", title=None, axis=alt.Axis(labelAngle=0), scale=places),
        y=alt.Y("target:Q", title="target"),
        tooltip=["input", alt.Tooltip("target", format=".4g")],
    )
    bars = base.mark_bar(width=60).encode(color=_which(for_page)["color"])
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
    panels = [each.properties(title=panel_title(n)) for n, each in comparison_panels(found).items()]
    return finished(
        alt.concat(*panels, columns=2),
        "Too few heads: the error that no readout of the network's Lipschitz constant avoids",
        [
            f"{found.task.intrinsic_dim} features, T = {found.task.length}. Forced: what every "
            "readout with a Lipschitz constant up to the network's own",
            "errs by on one of the two inputs found. Where nothing is forced there is no mark.",
        ],
    )


def error_colours(found: WitnessComparison) -> dict[str, str]:
    """The colour of each kind of error."""
    kinds = found.to_pandas()["kind"].drop_duplicates()
    return dict(zip(kinds, (ORANGE, BLUE, GREEN), strict=False))


def comparison_panels(
    found: WitnessComparison, for_page: bool = False
) -> dict[str, alt.TopLevelMixin]:
    """A chart a group of networks, all on the same axes; on a page the legend is the page's."""
    rows = found.to_pandas()
    forced = rows[rows["relative"] > _ROUNDING]
    ends = [forced["relative"].min() / 2, forced["relative"].max() * 2] if len(forced) else [0.1, 1]
    colours, heads = error_colours(found), sorted(rows["heads"].unique().tolist())
    legend = None if for_page else alt.Legend(labelLimit=400, orient="bottom", columns=1)
    places = alt.Scale(domain=heads)
    panels = {}
    for group in rows["group"].drop_duplicates():
        here = shown_of(alt.Chart(forced[forced["group"] == group]), "kind", for_page)
        base = here.encode(
            x=alt.X("heads:O", title="attention heads h", axis=_UPRIGHT, scale=places),
            y=alt.Y(
                "relative:Q",
                title="error / standard deviation of the target",
                scale=alt.Scale(type="log", domain=ends, nice=False),
                axis=logarithmic(*ends),
            ),
            color=colours_of("kind:N", colours, "error", legend),
            tooltip=told("group", "heads", "kind", relative=".3g", error=".3g"),
        )
        drawn = alt.layer(
            base.mark_line(strokeWidth=2), base.mark_point(size=80, filled=True, opacity=1)
        ).properties(width=_WIDTH, height=_HEIGHT + 50)
        panels[str(group)] = with_switches(drawn, for_page)
    return panels
