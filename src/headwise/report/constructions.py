"""Figures about what enough heads cost and too few: the phase map and built networks."""

import altair as alt
import pandas as pd

from headwise.build import Built, Frontier, TrialResults
from headwise.report.theme import BLUE, FAINT, GREY, ORANGE, PALETTE, SCHEME, SHADES, finished
from headwise.theory.head_count import PhaseMap


def draw_phase_map(found: PhaseMap) -> alt.TopLevelMixin:
    """heads × length, coloured by the exponent; grey where the bound forbids nothing."""
    rows = found.to_pandas()
    shown = rows.assign(label=rows["exponent"].map(lambda k: f"{k:.2g}" if pd.notna(k) else ""))
    shown.loc[shown["verdict"] == "not applicable", "label"] = "enough"
    shown.loc[shown["verdict"] == "vacuous", "label"] = "–"
    base = alt.Chart(shown).encode(
        x=alt.X("length:O", title="sequence length T", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("heads:O", title="attention heads h", sort="descending"),
        tooltip=["heads", "length", "exponent", "verdict"],
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
                "exponent:Q", title="exponent k", scale=alt.Scale(scheme=SCHEME, reverse=True)
            )
        )
    )
    middle = float(rows["exponent"].max() if rows["exponent"].notna().any() else 1) / 2
    text = base.mark_text(fontSize=11).encode(
        text="label:N",
        color=alt.condition(f"datum.exponent > {middle}", alt.value("white"), alt.value("black")),
    )
    size = {
        "width": max(200, 52 * rows["length"].nunique()),
        "height": 34 * rows["heads"].nunique(),
    }
    return finished(
        alt.layer(silent, values, text).properties(**size),
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
        tooltip=["sequence", "head", "position", alt.Tooltip("weight", format=".4f")],
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
        width=min(900, max(160, 14 * positions)), height=max(72, 22 * heads)
    )
    chart = panel.facet(row=alt.Row("sequence:N", title=None))
    return finished(chart, title, "Blue: attention; orange ring: the token that the target picks.")


def draw_frontier(found: Frontier) -> alt.TopLevelMixin:
    """params(error), log–log; a row of panels a task, a panel a length."""
    rows = found.to_pandas()
    curves = rows["curve"].drop_duplicates().tolist()
    colours = alt.Scale(domain=curves, range=[BLUE, ORANGE, GREY][: len(curves)])
    dashes = alt.Scale(domain=curves, range=[[1, 0], [1, 0], [6, 4]][: len(curves)])
    shown = rows[rows["params"] <= 1e16]
    decades = [10.0**power for power in range(-12, 17, 2)]
    tens = [10.0**power for power in range(-12, 1)]
    domain = [shown["params"].min() / 3, shown["params"].max() * 3]

    legend = alt.Legend(symbolType="stroke", symbolSize=300, labelLimit=300)

    def panel(task: str, length: int) -> alt.Chart:
        here = shown[(shown["task"] == task) & (shown["length"] == length)]
        exponent = here["exponent"].dropna()
        slope = f", k = {exponent.iloc[0]:.2g}" if len(exponent) else ", bound vacuous"
        return (
            alt.Chart(here)
            .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=18))
            .encode(
                x=alt.X(
                    "error:Q",
                    title="sup-norm error ε",
                    scale=alt.Scale(type="log", reverse=True),
                    axis=alt.Axis(format=".0e", values=tens),
                ),
                y=alt.Y(
                    "params:Q",
                    title="parameters M",
                    scale=alt.Scale(type="log", domain=domain, nice=False),
                    axis=alt.Axis(format=".0e", values=decades),
                ),
                color=alt.Color("curve:N", title=None, scale=colours, legend=legend),
                strokeDash=alt.StrokeDash("curve:N", title=None, scale=dashes, legend=legend),
                tooltip=["task", "length", "curve", "heads", "error", "params", "certified_error"],
            )
            .properties(width=220, height=200, title=f"{task}, T = {length}{slope}")
        )

    grid = alt.vconcat(
        *[
            alt.hconcat(*[panel(task, length) for length in sorted(here["length"].unique())])
            for task, here in rows.groupby("task", sort=False)
        ]
    )
    return finished(
        grid,
        "What an error costs: enough heads, one wide head, too few heads",
        [
            "M counts encoder and readout; the table says which networks were built and certified, "
            "the others are planned.",
            "Dashed: the slope k of theorem 2(2) for h = D − 1, n = 2, through the first built "
            "network, since its constant is unknown.",
            *_outside_assumptions(rows),
        ],
    )


def _outside_assumptions(rows: pd.DataFrame) -> list[str]:
    names = rows.loc[~rows["assumptions_met"], "task"].drop_duplicates().tolist()
    return [f"Outside that theorem's assumptions: {', '.join(names)}."] if names else []


def draw_trials(found: TrialResults) -> alt.TopLevelMixin:
    """How near each attack came to its certificate: nothing may lie above 1."""
    rows = found.to_pandas()
    rows["share"] = rows["worst_found"] / rows["certified"]
    marks = (
        alt.Chart(rows)
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X(
                "certified:Q",
                title="certified error",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format=".0e", values=[10.0**power for power in range(-12, 4)]),
            ),
            y=alt.Y("share:Q", title="worst error found / certified error"),
            color=alt.Color("features:N", title="features", scale=alt.Scale(range=list(PALETTE))),
            tooltip=["trial", "features", "outer", "length", "asked", "certified", "worst_found"],
        )
    )
    limit = alt.Chart(pd.DataFrame({"share": [1.0]})).mark_rule(strokeDash=[6, 4])
    return finished(
        alt.layer(marks, limit.encode(y="share:Q")).properties(width=420, height=260),
        "Certificates under attack",
        f"{len(rows)} random tasks; a certificate is broken by a point above the dashed line.",
    )
