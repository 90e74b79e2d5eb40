"""A study's figures, from its result table: one declarative chart for the page and for print."""

from math import ceil, floor, log10

import altair as alt
import pandas as pd

from headwise.lab.study import Figure, Study
from headwise.lab.summary import readable_value, summarise
from headwise.report.theme import GREY, SCHEME, finished

NAMES = {
    "overlap": "largest overlap of two directions",
    "heads": "attention heads h",
    "length": "sequence length T",
    "width": "hidden width N",
    "intrinsic_dim": "intrinsic dimension D",
    "dim": "dimension d",
    "points": "points N",
    "rank": "rank r of a head",
    "rank_share": "rank of a head / dimension",
    "layers": "layers L",
    "modules": "attention modules w",
    "power": "attention parameters ~ d^p, p",
    "positions": "positions",
    "part": "layer",
    "target": "target",
    "layer": "layer",
    "way": "parameters removed by",
    "keep": "share of the layer's parameters kept",
    "weights": "weights",
}
_WIDTH, _HEIGHT = 300, 240


def figure_data(
    study: Study, figure: Figure, results: pd.DataFrame, published: pd.DataFrame
) -> pd.DataFrame:
    """Everything that the figure draws: one row a point, ours, published and references."""
    ours = summarise(results[results["part"].isin(list(figure.panels))], study.setting)
    ours = ours.assign(source="this run")
    if figure.references is not None:
        return _with_panels(figure, _with_references(ours, figure.references(ours)))
    theirs = published[published["part"].isin(set(ours["part"]))].rename(
        columns={"error": "error_min"}
    )
    theirs = theirs.assign(error_mean=theirs["error_min"])
    if {figure.x, figure.colour} <= set(theirs.columns):
        ours = pd.concat([ours, theirs.assign(source="published")], ignore_index=True)
    return _with_panels(figure, ours)


def drawn(study: Study) -> str:
    """The column that stands for a setting: the smallest error over seeds, or the mean."""
    return "error_mean" if study.score == "mean" else "error_min"


def _with_references(ours: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    references = references.assign(error_mean=references["error_min"])
    return pd.concat([ours, references.assign(source="reference")], ignore_index=True)


def _with_panels(figure: Figure, data: pd.DataFrame) -> pd.DataFrame:
    panel = data["part"].map(dict(figure.panels))
    if figure.facet is not None:
        panel = NAMES[figure.facet] + " = " + data[figure.facet].map(readable_value)
    return data.assign(panel=panel)


def draw(
    study: Study, figure: Figure, results: pd.DataFrame, published: pd.DataFrame
) -> alt.Chart | None:
    """The figure, or None where the tier has no runs for it."""
    if not results["part"].isin(list(figure.panels)).any():
        return None
    data = figure_data(study, figure, results, published)
    height = drawn(study)
    data = data[data[height] > 0]
    domain = (data[height].min() / 2, data[height].max() * 2)
    rows = []
    for panel, here in data.groupby("panel", sort=False):
        references = here[here["source"] == "reference"]
        by_source = [here[here["source"] == source] for source in ("this run", "published")]
        rows.append(
            [
                _panel(study, figure, points, references, panel, domain)
                for points in by_source
                if len(points)
            ]
        )
    if all(len(row) == 1 for row in rows):  # nothing published: two panels side by side
        chart = alt.concat(*[row[0] for row in rows], columns=2)
    else:
        chart = alt.vconcat(*[alt.hconcat(*row) for row in rows])
    whole: alt.Chart = finished(chart, figure.title, figure.caption)
    return whole


def _panel(
    study: Study,
    figure: Figure,
    points: pd.DataFrame,
    references: pd.DataFrame,
    title: str,
    domain: tuple[float, float],
) -> alt.LayerChart:
    x = _x(figure, sorted({*points[figure.x].tolist(), *references[figure.x].tolist()}))
    y = _y(study, domain)
    colours = alt.Scale(scheme=SCHEME)
    base = alt.Chart(points).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip(f"{figure.x}:O", title=NAMES[figure.x]),
            alt.Tooltip(f"{figure.colour}:O", title=NAMES[figure.colour]),
            alt.Tooltip("error_min:Q", title=f"smallest {study.error}", format=".2e"),
            alt.Tooltip("error_mean:Q", title="mean (geometric)", format=".2e"),
            alt.Tooltip("error_low:Q", title="95 % from", format=".2e"),
            alt.Tooltip("error_high:Q", title="95 % to", format=".2e"),
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
    layers = [lines, marks]
    if len(references):
        layers.insert(0, _references(figure, references, x, y))
    source = points["source"].iloc[0]
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=f"{title} ({source})")


def _references(figure: Figure, references: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.LayerChart:
    """What theory, constructions or the paper say, in grey: a dash pattern for each."""
    base = alt.Chart(references).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("label:N", title="reference"),
            alt.Tooltip(f"{figure.x}:O", title=NAMES[figure.x]),
            alt.Tooltip("error_min:Q", title="error", format=".3g"),
        ],
    )
    dash = alt.StrokeDash(
        "label:N",
        title="reference",
        sort=None,
        legend=alt.Legend(labelLimit=320, symbolType="stroke", symbolSize=500),
    )
    lines = base.mark_line(strokeWidth=1.2, color=GREY).encode(strokeDash=dash)
    marks = base.mark_point(size=18, color=GREY, filled=True, opacity=1)
    # A dash pattern does not show on a single point: such a reference is named in place.
    single = references.groupby("label").filter(lambda rows: len(rows) == 1)
    on_the_right = single[figure.x] > references[figure.x].median()
    names = [
        alt.Chart(here)
        .mark_text(align=align, dx=shift, dy=9, fontSize=9, color=GREY)
        .encode(x=x, y=y, text="label:N")
        for here, align, shift in (
            (single[on_the_right], "right", -4),
            (single[~on_the_right], "left", 4),
        )
        if len(here)
    ]
    return alt.layer(lines, marks, *names)


def _x(figure: Figure, values: list[float]) -> alt.X:
    axis = alt.Axis(labelAngle=0, values=values, grid=False)
    if figure.x == "rank_share":
        axis.labelExpr = "datum.value < 1 ? '1/' + round(1 / datum.value) : '1'"
    if figure.x_log:
        scale = alt.Scale(type="log", base=2, nice=False, padding=12)
        return alt.X(f"{figure.x}:Q", title=NAMES[figure.x], axis=axis, scale=scale)
    return alt.X(f"{figure.x}:O", title=NAMES[figure.x], axis=axis)


def _y(study: Study, domain: tuple[float, float]) -> alt.Y:
    decades = range(floor(log10(domain[0])), ceil(log10(domain[1])) + 1)
    few = domain[1] < 300 * domain[0]  # few decades: name numbers between them
    values = [m * 10.0**power for power in decades for m in ((1, 2, 5) if few else (1,))]
    inside = [value for value in values if domain[0] <= value <= domain[1]]
    axis = alt.Axis(format="~g" if few else ".0e", values=inside)
    scale = alt.Scale(type="log", domain=list(domain), nice=False, clamp=True)
    title = f"{study.error}, {study.score} over seeds"
    return alt.Y(f"{drawn(study)}:Q", title=title, axis=axis, scale=scale)
