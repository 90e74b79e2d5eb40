"""Charts of an inspection, each a function that returns an Altair chart of plain data."""

import altair as alt
import pandas as pd

from headwise.pretrained.inspection import Inspection
from headwise.report.theme import SCHEME, finished

_STEP = 26


def heat_map(heads: pd.DataFrame, column: str, title: str, *, form: str = ".3g") -> alt.Chart:
    """One number a head: layers down, heads across. Viridis: readable without colour vision."""
    base = alt.Chart(heads, title=title).encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layer:O", title="layer"),
        tooltip=["layer", "head", alt.Tooltip(column, format=form)],
    )
    return (
        base.mark_rect()
        .encode(color=alt.Color(f"{column}:Q", title=None, scale=alt.Scale(scheme=SCHEME)))
        .properties(width=alt.Step(_STEP), height=alt.Step(_STEP))
    )


def charts(inspection: Inspection) -> dict[str, alt.Chart]:
    """All charts by name."""
    return heat_maps(inspection) | {
        "change_by_size": saturation_by_size(inspection),
        "change_by_length": saturation_by_length(inspection),
    }


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
        "importance": f"importance by gradients, {inspection.unit}",
        "importance_measured": f"importance measured, {inspection.unit}",
        "similarity": "cosine to the most similar head of the layer",
    }
    return {name: heat_map(heads, name, title) for name, title in shown.items() if name in heads}


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
