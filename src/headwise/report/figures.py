"""A study's figures, from its result table: one declarative chart for the page and for print."""

from math import ceil, floor, log10

import altair as alt
import pandas as pd

from headwise.lab.study import Figure
from headwise.lab.summary import summarise

NAMES = {
    "heads": "attention heads h",
    "length": "sequence length T",
    "width": "hidden width N",
    "intrinsic_dim": "intrinsic dimension D",
}
_WIDTH, _HEIGHT = 300, 240


def figure_data(figure: Figure, results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Everything that the figure draws: one row a point, ours and published."""
    ours = summarise(results[results["part"].isin(list(figure.panels))]).assign(source="this run")
    theirs = published[published["part"].isin(set(ours["part"]))].rename(
        columns={"nmse": "nmse_min"}
    )
    if {figure.x, figure.colour} <= set(theirs.columns):
        ours = pd.concat([ours, theirs.assign(source="published")], ignore_index=True)
    panel = ours["part"].map(dict(figure.panels))
    if figure.facet is not None:
        panel = NAMES[figure.facet] + " = " + ours[figure.facet].astype(str)
    return ours.assign(panel=panel)


def draw(figure: Figure, results: pd.DataFrame, published: pd.DataFrame) -> alt.Chart | None:
    """The figure, or None where the tier has no runs for it."""
    if not results["part"].isin(list(figure.panels)).any():
        return None
    data = figure_data(figure, results, published)
    data = data[data["nmse_min"] > 0]
    domain = (data["nmse_min"].min() / 2, data["nmse_min"].max() * 2)
    rows = []
    for panel, here in data.groupby("panel", sort=False):
        by_source = [here[here["source"] == source] for source in ("this run", "published")]
        rows.append([_panel(figure, points, panel, domain) for points in by_source if len(points)])
    if all(len(row) == 1 for row in rows):  # nothing published: panels side by side
        chart = alt.hconcat(*[row[0] for row in rows])
    else:
        chart = alt.vconcat(*[alt.hconcat(*row) for row in rows])
    return chart.properties(
        title=alt.TitleParams(figure.title, subtitle=figure.caption, anchor="start", offset=12)
    ).configure(font="sans-serif", background="white")


def _panel(
    figure: Figure, points: pd.DataFrame, title: str, domain: tuple[float, float]
) -> alt.LayerChart:
    x_axis = alt.Axis(labelAngle=0, values=sorted(set(points[figure.x].tolist())), grid=False)
    if figure.x_log:
        scale = alt.Scale(type="log", base=2, nice=False, padding=12)
        x = alt.X(f"{figure.x}:Q", title=NAMES[figure.x], axis=x_axis, scale=scale)
    else:
        x = alt.X(f"{figure.x}:O", title=NAMES[figure.x], axis=x_axis)
    decades = range(ceil(log10(domain[0])), floor(log10(domain[1])) + 1)
    y_axis = alt.Axis(format=".0e", values=[10.0**power for power in decades])
    y_scale = alt.Scale(type="log", domain=list(domain), nice=False, clamp=True)
    colours = alt.Scale(scheme="viridis")
    base = alt.Chart(points).encode(
        x=x,
        y=alt.Y("nmse_min:Q", title="NMSE, smallest over seeds", axis=y_axis, scale=y_scale),
        tooltip=[
            alt.Tooltip(f"{figure.x}:O", title=NAMES[figure.x]),
            alt.Tooltip(f"{figure.colour}:O", title=NAMES[figure.colour]),
            alt.Tooltip("nmse_min:Q", title="smallest NMSE", format=".2e"),
            alt.Tooltip("nmse_mean:Q", title="mean (geometric)", format=".2e"),
            alt.Tooltip("nmse_low:Q", title="95 % from", format=".2e"),
            alt.Tooltip("nmse_high:Q", title="95 % to", format=".2e"),
            alt.Tooltip("seeds:Q", title="seeds"),
            alt.Tooltip("stuck:Q", title="stuck seeds"),
        ],
    )
    # The lines are coloured by `stroke` so that the points' legend joins colour and shape.
    lines = base.mark_line(strokeWidth=2).encode(
        stroke=alt.Stroke(f"{figure.colour}:O", scale=colours, legend=None)
    )
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(
        color=alt.Color(f"{figure.colour}:O", title=NAMES[figure.colour], scale=colours),
        shape=alt.Shape(f"{figure.colour}:O", title=NAMES[figure.colour]),
    )
    source = points["source"].iloc[0]
    return alt.layer(lines, marks).properties(
        width=_WIDTH, height=_HEIGHT, title=f"{title} ({source})"
    )
