"""Charts of an inspection, each a function that returns an Altair chart of plain data."""

import altair as alt
import pandas as pd

from headwise.pretrained.inspection import Inspection
from headwise.report.theme import SCHEME, finished

_STEP = 26


def heat_map(
    heads: pd.DataFrame, column: str, title: str, *, ends: tuple[float, float] | None = None
) -> alt.Chart:
    """One number a head: layers down, heads across. `ends` are the scale's, if not the data's."""
    scale = alt.Scale(scheme=SCHEME, **({"domain": list(ends)} if ends else {}))
    base = alt.Chart(heads, title=title).encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layer:O", title="layer"),
        tooltip=["layer", "head", alt.Tooltip(column, format=".3g")],
    )
    return (
        base.mark_rect()
        .encode(color=alt.Color(f"{column}:Q", title=None, scale=scale))
        .properties(width=alt.Step(_STEP), height=alt.Step(_STEP))
    )


def charts(inspection: Inspection) -> dict[str, alt.Chart | alt.LayerChart]:
    """All charts by name."""
    by_size = {} if inspection.sizes.empty else {"damage": damage_by_size(inspection)}
    return (
        heat_maps(inspection)
        | by_size
        | {
            "change_by_size": saturation_by_size(inspection),
            "change_by_length": saturation_by_length(inspection),
        }
    )


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
    base = alt.Chart(sizes, title="damage when compressed: predicted line, measured points").encode(
        x=alt.X("kept:Q", title="attention parameters kept", axis=alt.Axis(format="%")),
        tooltip=[
            alt.Tooltip("kept", format=".0%"),
            alt.Tooltip("predicted", format=".3g"),
            alt.Tooltip("measured", format=".3g"),
        ],
    )
    title = f"damage, {inspection.unit}"
    line = base.mark_line().encode(y=alt.Y("predicted:Q", title=title))
    points = base.transform_filter("isValid(datum.measured)")
    marks = points.mark_point(filled=True, size=60).encode(y=alt.Y("measured:Q", title=title))
    bars = points.mark_rule().encode(y="low:Q", y2="high:Q")
    return alt.layer(line, bars, marks).properties(width=360, height=240)


def saturation_by_size(inspection: Inspection) -> alt.Chart:
    """Output change by query–key size, a line a layer."""
    errors = inspection.errors
    longest = errors[errors["length"] == errors["length"].max()]
    data = longest.groupby(["layer", "size"], as_index=False)["change"].mean()
    return _lines(data, "size", "query–key dimensions kept", "layer", "layer")


def saturation_by_length(inspection: Inspection) -> alt.Chart:
    """Output change by sequence length at a small size, a line a layer."""
    errors = inspection.errors
    sizes = sorted(errors["size"].unique())
    small = errors[errors["size"] == sizes[len(sizes) // 3]]
    data = small.groupby(["layer", "length"], as_index=False)["change"].mean()
    title = f"sequence length, tokens ({sizes[len(sizes) // 3]} dimensions kept)"
    return _lines(data, "length", title, "layer", "layer")


def _lines(data: pd.DataFrame, x: str, title: str, by: str, by_title: str) -> alt.Chart:
    return (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{x}:Q", title=title),
            y=alt.Y(
                "change:Q", title="change of the head's output (mean)", axis=alt.Axis(format="%")
            ),
            color=alt.Color(f"{by}:O", title=by_title, scale=alt.Scale(scheme=SCHEME)),
            tooltip=[by, x, alt.Tooltip("change", format=".2%")],
        )
        .properties(width=360, height=240)
    )
