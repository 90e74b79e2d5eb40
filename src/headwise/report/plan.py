"""A plan as one figure: how many heads every layer has, and how wide they are."""

import altair as alt
import pandas as pd

from headwise.allocation.plan_file import AllocationPlan
from headwise.nets.shape import AttentionShape

_WIDTH, _LAYER_HEIGHT = 460, 26
_ROOM = 1.2  # of the longest bar, for the words beside it


def draw(plan: AllocationPlan) -> alt.LayerChart:
    """A bar a layer, as long as heads × dimension; a cell of it is a head."""
    layers = _layers(plan)
    y = alt.Y("layer:O", title="layer, first to last", axis=alt.Axis(grid=False))
    x = alt.X(
        "start:Q",
        title="heads × dimension (mean of query–key and value)",
        scale=alt.Scale(domainMax=_ROOM * float(layers["end"].max()), nice=False),
    )
    shade = alt.Color(
        "dim:Q",
        title="dimension of a head",
        scale=alt.Scale(scheme="blues", domainMin=0),
    )
    cells = (
        alt.Chart(_heads(layers))
        .mark_bar(stroke="white", strokeWidth=1)
        .encode(
            x=x,
            x2="end:Q",
            y=y,
            color=shade,
            tooltip=["layer:O", "heads:Q", "qk_dim:Q", "v_dim:Q", "parameters:Q"],
        )
    )
    labels = alt.Chart(layers).mark_text(align="left", dx=5).encode(x="end:Q", y=y, text="label:N")
    spent = f"{plan.parameters:,} of {plan.budget:,} attention parameters"
    checked = "compared with uniform on data" if plan.checked else "not checked on data"
    title = alt.TitleParams(plan.schedule, subtitle=[spent, checked], anchor="start")
    return (
        alt.layer(cells, labels)
        .properties(width=_WIDTH, height=_LAYER_HEIGHT * len(plan.layers), title=title)
        .configure(font="sans-serif", background="white")
    )


def _layers(plan: AllocationPlan) -> pd.DataFrame:
    """A row a layer: its table, where its bar ends, and the words beside it."""
    table = plan.table()
    dim = (table["qk_dim"] + table["v_dim"]) / 2
    return table.assign(
        dim=dim,
        end=table["heads"] * dim,
        label=[_label(layer) for layer in plan.layers],
    )


def _label(layer: AttentionShape) -> str:
    same = layer.qk_dim == layer.v_dim
    return f"{layer.heads} × {layer.qk_dim if same else (layer.qk_dim, layer.v_dim)}"


def _heads(layers: pd.DataFrame) -> pd.DataFrame:
    """A row a head: where its cell begins and ends."""
    each = layers.loc[layers.index.repeat(layers["heads"])]
    number = each.groupby("layer").cumcount()
    return each.assign(start=number * each["dim"], end=(number + 1) * each["dim"])
