"""A plan as one figure: how many heads every layer has, and how wide they are."""

import altair as alt
import pandas as pd

from headwise.allocation.plan_file import AllocationPlan
from headwise.nets.shape import AttentionShape
from headwise.report.theme import BLUE, GREY, ORANGE, finished

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
    sized = alt.layer(cells, labels).properties(
        width=_WIDTH, height=_LAYER_HEIGHT * len(plan.layers)
    )
    chart: alt.LayerChart = finished(sized, plan.schedule, [spent, checked])
    return chart


def beside_uniform(plan: AllocationPlan) -> dict[str, alt.LayerChart]:
    """Heads × dimension by layer, the plan's and the uniform schedule's of the same budget."""
    ours = plan.table().assign(schedule=plan.schedule)
    dims = (ours["qk_dim"] + ours["v_dim"]) / 2
    uniform = plan.budget / (4 * plan.width * len(plan.layers))
    rows = ours.assign(total=ours["heads"] * dims, dim=dims, uniform=uniform)
    y = alt.Y("layer:O", title="layer")
    base = alt.Chart(rows).encode(y=y, tooltip=["layer", "heads", "qk_dim", "v_dim", "parameters"])
    bars = base.mark_bar(color=BLUE).encode(x=alt.X("total:Q", title="heads × dimension"))
    ticks = base.mark_tick(color=ORANGE, thickness=3, size=22).encode(x="uniform:Q")
    counts = base.mark_bar(color=BLUE).encode(x=alt.X("heads:Q", title="heads"))
    widths = base.mark_bar(color=BLUE).encode(x=alt.X("dim:Q", title="dimension of a head"))
    size = {"width": 330, "height": _LAYER_HEIGHT * len(plan.layers)}
    return {
        "Heads × dimension (orange: uniform)": alt.layer(bars, ticks).properties(**size),
        "Heads": alt.layer(counts).properties(**size),
        "Dimension of a head": alt.layer(widths).properties(**size),
    }


def candidate_intervals(plan: AllocationPlan) -> alt.LayerChart:
    """Each allocation that was tried: its loss minus uniform's, with the 95 % interval."""
    rows = plan.candidate_table().dropna(subset="against_uniform")
    y = alt.Y("name:N", title=None, sort=rows["name"].tolist(), axis=alt.Axis(labelLimit=260))
    base = alt.Chart(rows).encode(y=y, tooltip=["name", "against_uniform", "low", "high", "seeds"])
    x = alt.X("against_uniform:Q", title="loss minus uniform's")
    points = base.mark_point(filled=True, size=60, color=BLUE, opacity=1).encode(x=x)
    known = base.transform_filter("isValid(datum.low)")
    lines = known.mark_rule(color=BLUE, strokeWidth=2).encode(x="low:Q", x2="high:Q")
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY, strokeDash=[4, 3])
    layers = alt.layer(zero.encode(x="zero:Q"), lines, points)
    chart: alt.LayerChart = finished(
        layers.properties(width=_WIDTH, height=28 * len(rows)), "What was tried, against uniform"
    )
    return chart


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
