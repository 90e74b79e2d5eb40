"""Figures about what enough heads cost and too few: the phase map and built networks."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.build import Built, Frontier, TrialResults
from headwise.report.lines.switches import colours_of, shown_of, with_switches
from headwise.report.theme import (
    BLUE,
    FAINT,
    GREY,
    ORANGE,
    PALETTE,
    SCHEME,
    SHADES,
    decades,
    finished,
    logarithmic,
    panel_title,
    told,
)
from headwise.theory.bound import rounded_down
from headwise.theory.head_count import PhaseMap


def draw_phase_map(found: PhaseMap) -> alt.TopLevelMixin:
    """heads × length, coloured by the exponent; grey where the bound forbids nothing."""
    rows = found.to_pandas()
    shown = rows.assign(
        label=rows["exponent"].map(lambda k: rounded_down(k, 2) if pd.notna(k) else "")
    )
    shown.loc[shown["verdict"] == "not applicable", "label"] = "enough"
    shown.loc[shown["verdict"] == "vacuous", "label"] = "–"
    base = alt.Chart(shown).encode(
        x=alt.X("length:O", title="sequence length T", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("heads:O", title="attention heads h", sort="descending"),
        tooltip=told("heads", "length", "verdict", exponent=".4~g"),
    )
    silent = (
        base.transform_filter("!isValid(datum.exponent)")
        .mark_rect()
        .encode(
            color=alt.condition(
                "datum.verdict == 'vacuous'", alt.value(SHADES[0]), alt.value(SHADES[1])
            )
        )
    )
    values = (
        base.transform_filter("isValid(datum.exponent)")
        .mark_rect()
        .encode(
            color=alt.Color(
                "exponent:Q",
                title="exponent k",
                scale=alt.Scale(scheme=SCHEME, reverse=True),
                legend=alt.Legend(format=".2~g"),
            )
        )
    )
    known = rows["exponent"].notna()
    middle = float(rows["exponent"].max() if known.any() else 1) / 2
    text = base.mark_text(fontSize=13).encode(
        text="label:N",
        color=alt.condition(f"datum.exponent > {middle}", alt.value("white"), alt.value("black")),
    )
    size = {
        "width": max(200, 52 * rows["length"].nunique()),
        "height": 34 * rows["heads"].nunique(),
    }
    layers = [silent, *([values] if known.any() else []), text]  # a scale of no numbers says NaN
    return finished(
        alt.layer(*layers).properties(**size),
        "What too few heads cost: parameters = Ω(1/error^k)",
        [
            f"Theorem 2(2) of arXiv 2510.06662, D = {found.intrinsic_dim}, "
            f"n = {found.head_dim} per head, |S_i| ≥ {found.set_fraction:g}·T.",
            "“–”: the bound is vacuous; “enough”: h ≥ D, a small network exists.",
        ],
    )


def draw_attention(built: Built) -> alt.TopLevelMixin:
    """Each head's attention over the positions, with a ring at the extremum it should pick."""
    rows = built.attention()
    task = built.task
    title = f"Which token each head picks (D = {task.intrinsic_dim}, T = {task.length})"
    every = max(1, rows["position"].nunique() // 16)
    ticks = [t for t in sorted(rows["position"].unique().tolist()) if t % every == 0]
    base = alt.Chart(rows).encode(
        x=alt.X("position:O", title="position t", axis=alt.Axis(values=ticks, labelAngle=0)),
        y=alt.Y("head:O", title="head"),
        tooltip=told("sequence", "head", "position", weight=".4f"),
    )
    weights = base.mark_rect().encode(
        color=alt.Color(
            "weight:Q",
            title="attention",
            scale=alt.Scale(range=[FAINT, BLUE], domain=[0, 1]),
        )
    )
    rings = base.transform_filter("datum.wanted").mark_point(
        size=90, color=ORANGE, strokeWidth=2.5, opacity=1, filled=False
    )
    positions, heads = rows["position"].nunique(), rows["head"].nunique()
    panel = alt.layer(weights, rings).properties(
        width=min(900, max(340, 14 * positions)), height=max(72, 26 * heads)
    )
    chart = panel.facet(row=alt.Row("sequence:N", title=None))
    return finished(chart, title, "Blue: attention; orange ring: the token that the target picks.")


def draw_frontier(found: Frontier) -> alt.TopLevelMixin:
    """params(error), log–log; a row of panels a task, a panel a length."""
    panels = frontier_panels(found).items()
    titled = [
        panel.properties(width=240, height=220, title=panel_title(name)) for name, panel in panels
    ]
    return finished(
        alt.concat(*titled, columns=found.to_pandas()["length"].nunique()),
        "What an error costs: enough heads, or one wide head",
        [
            "M counts encoder and readout. Filled: the network was built and its error certified; "
            "hollow: its parameters were only counted.",
            "Grey: the least slope k that theorem 2(2) of arXiv 2510.06662 leaves to h = D − 1, "
            "n = 2. It is a slope alone: the constant is unknown,",
            "so the line says nothing of how many parameters. It is left out where the theorem is "
            "vacuous or does not apply.",
        ],
    )


def frontier_panels(found: Frontier) -> dict[str, alt.LayerChart]:
    """A chart a task and length, by its title."""
    rows = found.to_pandas()
    return {
        f"{task}, T = {length}": _frontier_panel(rows, str(task), int(length))
        for task, length in rows[["task", "length"]].drop_duplicates().itertuples(index=False)
    }


def _frontier_panel(rows: pd.DataFrame, task: str, length: int) -> alt.LayerChart:
    curves = rows["curve"].drop_duplicates().tolist()
    here = rows[(rows["task"] == task) & (rows["length"] == length)]
    domain = [rows["params"].min() / 3, rows["params"].max() * 3]
    largest, least = 1.5 * float(rows["error"].max()), float(rows["error"].min()) / 1.5
    x = alt.X(
        "error:Q",
        title="sup-norm error ε",
        scale=alt.Scale(type="log", domain=[largest, least], nice=False),
        axis=logarithmic(least, largest),
    )
    y = alt.Y(
        "params:Q",
        title="parameters M",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=decades(-2, 40, 2),
    )
    colour = alt.Scale(domain=curves, range=[BLUE, ORANGE][: len(curves)])
    base = alt.Chart(here).encode(
        x=x,
        y=y,
        color=alt.Color("curve:N", title=None, scale=colour, legend=None),
        tooltip=told(
            *("task", "length", "curve", "heads", "network"),
            error="~g",
            params=",d",
            certified_error=".3g",
        ),
    )
    lines = base.mark_line(strokeWidth=2)
    counted = base.transform_filter("datum.network == 'counted'").mark_point(size=30)
    built = base.transform_filter("datum.network == 'built'").mark_point(size=45, filled=True)
    marks = {"counted": counted, "built": built.encode(opacity=alt.value(1))}
    layers = [lines, *(mark for name, mark in marks.items() if (here["network"] == name).any())]
    last = base.transform_filter(alt.datum.error == float(here["error"].min()))
    layers.append(
        last.mark_text(align="right", dy=-12, fontSize=14)
        .encode(text="curve:N")
        .properties(name=f"curves_{_address(here)}")
    )
    exponent = here["exponent"].iloc[0]
    if exponent is not None and exponent == exponent:
        layers.append(_slope(here, float(exponent), domain, x, y))
    return alt.layer(*layers).properties(width=430, height=250)


def _slope(
    here: pd.DataFrame, exponent: float, domain: list[float], x: alt.X, y: alt.Y
) -> alt.LayerChart:
    """A short line of that slope in the middle of the panel, with the slope written at it."""
    errors = here["error"]
    centre = float(errors.max() * errors.min()) ** 0.5
    height = float(domain[0] * domain[1]) ** 0.5
    wide = max(0.1, 0.3 * float(np.log10(errors.max() / errors.min())))
    rise = min(wide, 0.25 * float(np.log10(domain[1] / domain[0])) / exponent)  # decades of error
    ends = [centre * 10**rise, centre * 10**-rise]
    line = pd.DataFrame(
        {"error": ends, "params": [height * (centre / e) ** exponent for e in ends]}
    )
    word = pd.DataFrame({"error": [ends[0]], "params": [line["params"].min()]})
    word["label"] = f"slope k ≥ {rounded_down(exponent, 2)}"
    drawn = alt.Chart(line).mark_line(color=GREY, strokeDash=[6, 4], strokeWidth=2)
    text = alt.Chart(word).mark_text(color=GREY, fontSize=14, align="left", dx=6, dy=12)
    note = text.encode(x=x, y=y, text="label:N").properties(
        name=f"note_{len(here)}_{_address(here)}"
    )
    return alt.layer(drawn.encode(x=x, y=y), note)


def _address(here: pd.DataFrame) -> str:
    """A name for the panel's parts that no other panel has."""
    return "".join(c for c in f"{here['task'].iloc[0]}{here['length'].iloc[0]}" if c.isalnum())


def draw_trials(found: TrialResults) -> alt.TopLevelMixin:
    """How near each attack came to its certificate: nothing may lie above 1."""
    return finished(
        trials_panel(found),
        "Certificates under attack",
        f"{len(found.rows)} random tasks; a certificate is broken by a point above the dashed "
        "line.",
    )


def feature_colours(found: TrialResults) -> dict[str, str]:
    """The colour of each kind of features."""
    kinds = sorted(found.to_pandas()["features"].unique())
    return {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(kinds)}


def trials_panel(found: TrialResults, for_page: bool = False) -> alt.LayerChart:
    """A point a trial; on a page the legend is the page's."""
    rows = found.to_pandas()
    rows["share"] = rows["worst_found"] / rows["certified"]
    legend = None if for_page else alt.Legend()
    certified = alt.Scale(type="log")
    marks = shown_of(alt.Chart(rows), "features", for_page).mark_point(
        filled=True, size=60, opacity=1
    )
    points = marks.encode(
        x=alt.X("certified:Q", title="certified error", scale=certified, axis=decades(-12, 3)),
        y=alt.Y("share:Q", title="worst error found / certified error"),
        color=colours_of("features:N", feature_colours(found), "features", legend),
        tooltip=told(
            *("trial", "features", "outer", "length"),
            **dict.fromkeys(("asked", "certified", "worst_found"), ".3g"),
        ),
    )
    limit = alt.Chart(pd.DataFrame({"share": [1.0]})).mark_rule(color=GREY, strokeDash=[6, 4])
    drawn = alt.layer(points, limit.encode(y="share:Q")).properties(width=420, height=260)
    chart: alt.LayerChart = with_switches(drawn, for_page)
    return chart
