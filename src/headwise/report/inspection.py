"""Charts of an inspection, each a function that returns an Altair chart of plain data."""

from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from headwise.pretrained.inspection import Inspection
from headwise.report.lines.style import in_lines
from headwise.report.lines.switches import colours_of, shown_of, with_switches
from headwise.report.theme import BLUE, FAINTEST, GREY, ORANGE, SCHEME, finished, ordered, told

_STEP = 26
_APART = 0.6  # share of an axis that is left free between places: what belongs together is close
_NAMED = 16  # lines that a legend names; of more it shows the scale


class LineChart(NamedTuple):
    """A chart with lines and its words; `colours` are those of its layers, where they have some."""

    title: str
    chart: alt.LayerChart
    caption: str
    colours: dict[str, str]


def heat_map(
    heads: pd.DataFrame, column: str, title: str, *, ends: tuple[float, float] | None = None
) -> alt.LayerChart:
    """One number a head: layers down, heads across; × where there is none.

    `ends` are the scale's, if not the data's.
    """
    scale = alt.Scale(scheme=SCHEME, **({"domain": list(ends)} if ends else {}))
    base = alt.Chart(heads).encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layer:O", title="layer"),
        tooltip=told("layer", "head", **{column: ".3g"}),
    )
    cells = base.mark_rect().encode(color=alt.Color(f"{column}:Q", title=None, scale=scale))
    gone = base.transform_filter(f"!isValid(datum['{column}'])").mark_text(text="×", color=GREY)
    known = cells.transform_filter(f"isValid(datum['{column}'])")
    parts = alt.layer(known, gone.properties(name="note_gone"))
    return parts.properties(title=title, width=alt.Step(_STEP), height=alt.Step(_STEP))


def charts(inspection: Inspection) -> dict[str, alt.Chart | alt.LayerChart]:
    """All charts by name."""
    lines = {name: each.chart for name, each in line_charts(inspection).items()}
    return heat_maps(inspection) | lines


def line_charts(inspection: Inspection, for_page: bool = False) -> dict[str, LineChart]:
    """The charts with lines by name; on a page the legend is the page's."""
    drawn = {}
    if not inspection.sizes.empty:
        drawn["damage"] = LineChart(
            "What a smaller attention would cost",
            damage_by_size(inspection),
            "Line: predicted from gradients. Points: measured on held-out data, with 95 % "
            "intervals over documents.",
            {},
        )
    range_of = "Lines: mean over a layer's heads; bars: from the head that changes least to most."
    colours = _colours(inspection.errors)
    drawn["change_by_size"] = LineChart(
        "How far heads' outputs move when dimensions are cut",
        saturation_by_size(inspection, for_page),
        range_of,
        colours,
    )
    if inspection.errors["length"].nunique() > 1:
        drawn["change_by_length"] = LineChart(
            "How that depends on the length of the sequence",
            saturation_by_length(inspection, for_page),
            range_of,
            colours,
        )
    return drawn


def _colours(errors: pd.DataFrame) -> dict[str, str]:
    """The colour of each layer; none where they are too many to be named."""
    layers = [str(layer) for layer in sorted(errors["layer"].unique().tolist())]
    return dict(zip(layers, ordered(len(layers)), strict=True)) if len(layers) <= _NAMED else {}


def draw(inspection: Inspection) -> alt.ConcatChart:
    """All charts, side by side."""
    parts = alt.concat(*charts(inspection).values(), columns=2).resolve_scale(color="independent")
    return finished(parts, inspection.title)


def heat_maps(inspection: Inspection) -> dict[str, alt.Chart]:
    """The inspection's heat maps by name."""
    heads = inspection.heads
    shown = {
        "size_at_1pct": "query–key size at 1 % output change",
        "size_at_10pct": "query–key size at 10 % output change",
        "rank_by_weights": "effective rank of the query–key form, by weights",
        "rank_by_activations": "effective rank, by activations and loss",
        "entropy": "attention entropy, nats",
        "importance": f"importance (loss when replaced by its mean), {inspection.unit}",
        "importance_measured": f"importance measured, {inspection.unit}",
        "similarity": "cosine to the most similar head of the layer",
    }
    return {name: heat_map(heads, name, title) for name, title in shown.items() if name in heads}


def damage_by_size(inspection: Inspection) -> alt.LayerChart:
    """Damage by the share of the attention's parameters kept: predicted, and measured points."""
    sizes = inspection.sizes
    title = in_lines(f"damage: {inspection.objective}, {inspection.unit}")
    shares = [share / 10 for share in range(1, 11)]
    base = alt.Chart(sizes).encode(
        x=alt.X(
            "kept:Q",
            title="attention parameters kept",
            scale=alt.Scale(domain=[float(sizes["kept"].min()), 1.0], nice=False),
            axis=alt.Axis(format="%", values=shares, grid=False),
        ),
        tooltip=told(kept=".0%", **dict.fromkeys(("predicted", "measured", "low", "high"), ".3g")),
    )
    zero = alt.Chart(pd.DataFrame({"predicted": [0.0]})).mark_rule(color=GREY, strokeDash=[4, 3])
    line = base.mark_line(color=BLUE, strokeWidth=2.5)
    points = base.transform_filter("isValid(datum.measured)")
    marks = points.mark_point(filled=True, size=80, color=ORANGE, opacity=1)
    bars = points.mark_rule(color=ORANGE, strokeWidth=2)
    y = alt.Y("predicted:Q", title=title, axis=alt.Axis(format="~g"))
    return alt.layer(
        zero.encode(y=y),
        line.encode(y=y),
        bars.encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        marks.encode(y=alt.Y("measured:Q", title=title)),
    ).properties(width=460, height=300)


def saturation_by_size(inspection: Inspection, for_page: bool = False) -> alt.LayerChart:
    """Output change by query–key size, a line a layer."""
    errors = inspection.errors
    longest = errors[errors["length"] == errors["length"].max()]
    data = _by_layer(longest, "size")
    return _lines(data, "size", "query–key dimensions kept", for_page)


def saturation_by_length(inspection: Inspection, for_page: bool = False) -> alt.LayerChart:
    """Output change by sequence length at a small size, a line a layer."""
    errors = inspection.errors
    sizes = sorted(errors["size"].unique())
    small = errors[errors["size"] == sizes[len(sizes) // 3]]
    data = _by_layer(small, "length")
    title = f"sequence length (with {sizes[len(sizes) // 3]} dimensions)"
    return _lines(data, "length", title, for_page)


def _by_layer(errors: pd.DataFrame, by: str) -> pd.DataFrame:
    """Mean over a layer's heads, with the least and the largest of them."""
    found = errors.groupby(["layer", by])["change"].agg(["mean", "min", "max"]).reset_index()
    return found.rename(columns={"mean": "change", "min": "least", "max": "largest"})


def _lines(data: pd.DataFrame, x: str, title: str, for_page: bool) -> alt.LayerChart:
    """Means over heads; bars, side by side, from the head that changes least to the one most."""
    colours, places = _colours(data), sorted(data[x].unique().tolist())
    y_title = "change of the output"
    named = data.assign(layer=data["layer"].map(str)) if colours else data
    base = alt.Chart(named).encode(
        x=alt.X(
            f"{x}:O",
            title=title,
            axis=alt.Axis(labelAngle=0, grid=False),
            scale=alt.Scale(domain=places, paddingInner=_APART, paddingOuter=_APART / 2),
        ),
        color=_layer_colours(colours, for_page),
        tooltip=told("layer", x, **dict.fromkeys(("change", "least", "largest"), ".2%")),
    )
    if colours:
        base = base.encode(xOffset=alt.XOffset("layer:O", scale=alt.Scale(domain=list(colours))))
        base = shown_of(base, "layer", for_page)
    scale = alt.Scale(domainMin=0, domainMax=float(data["largest"].max()) or 1.0)
    y = alt.Y("change:Q", title=y_title, axis=alt.Axis(format="%"), scale=scale)
    bars = base.mark_rule(strokeWidth=1.5, opacity=FAINTEST).encode(
        y=alt.Y("least:Q", title=y_title), y2="largest:Q"
    )
    lines = base.mark_line(strokeWidth=1.5).encode(y=y)
    points = base.mark_point(filled=True, size=45, opacity=1).encode(y=y)
    layers = alt.layer(bars, lines, points).properties(width=460, height=300)
    chart: alt.LayerChart = with_switches(layers, for_page)
    return chart


def _layer_colours(colours: dict[str, str], for_page: bool) -> alt.Color:
    """A colour a layer, with its name; of many layers, their scale."""
    if not colours:
        scale = alt.Scale(range=ordered(_NAMED))
        return alt.Color("layer:Q", title="layer", scale=scale, legend=alt.Legend(orient="top"))
    legend: Any = alt.Legend(orient="top", columns=8, symbolOpacity=1)
    return colours_of("layer:O", colours, "layer", None if for_page else legend)
