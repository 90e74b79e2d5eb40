"""A plan as one figure: how many heads every layer has, and how wide they are."""

from itertools import groupby

import altair as alt
import pandas as pd

from headwise.allocation.plan_file import AllocationPlan
from headwise.nets.shape import AttentionShape
from headwise.report.theme import BLUE, GREY, GROUNDS, ORANGE, finished, told

_WIDTH, _LAYER_HEIGHT, _LEAST_HEIGHT = 460, 32, 120
_ROOM = 1.25  # of the longest bar, for the words beside it


def draw(plan: AllocationPlan) -> alt.LayerChart:
    """A bar a layer, as long as heads × dimension; a cell of it is a head."""
    spent = f"{plan.parameters:,} of {plan.budget:,} attention parameters"
    checked = "compared with uniform on data" if plan.checked else "not checked on data"
    drawn = by_layer(plan)
    chart: alt.LayerChart = finished(drawn, plan.schedule, [f"{spent}; {checked}.", READ_AS])
    return chart


READ_AS = "A cell is a head, as wide as its dimension. Orange: a uniform plan of the same budget."


def by_layer(plan: AllocationPlan) -> alt.LayerChart:
    """Cells for heads, a row a layer, and how far a uniform plan of the same budget would reach."""
    layers = _layers(plan)
    uniform = plan.budget / (4 * plan.width * len(plan.layers))
    y = alt.Y("layer:O", title="layer", axis=alt.Axis(grid=False, ticks=False, domain=False))
    most = _ROOM * max(uniform, float(layers["end"].max()))
    x = alt.X(
        "start:Q",
        title="heads × dimension",
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(tickMinStep=1, tickCount=6),
    )
    tip = told("layer:O", heads="d", qk_dim="d", v_dim="d", parameters=",d")
    cells = alt.Chart(_heads(layers)).mark_bar(
        color=BLUE, stroke=GROUNDS[0], strokeWidth=1.5, height={"band": 0.72}
    )
    base = alt.Chart(layers.assign(uniform=uniform)).encode(y=y, tooltip=tip)
    ticks = base.mark_tick(color=ORANGE, thickness=3, height={"band": 0.95})
    labels = base.mark_text(align="left", dx=8, fontSize=14, color=GREY)
    return alt.layer(
        cells.encode(x=x, x2="end:Q", y=y, tooltip=tip),
        ticks.encode(x=alt.X("uniform:Q", title="heads × dimension")),
        labels.encode(x=alt.X("reach:Q", title="heads × dimension"), text="label:N").properties(
            name="note_layer"
        ),
    ).properties(width=_WIDTH, height=max(_LEAST_HEIGHT, _LAYER_HEIGHT * len(plan.layers)))


def candidate_intervals(plan: AllocationPlan) -> alt.LayerChart:
    """Each allocation that was tried: its loss minus uniform's, with the 95 % interval."""
    rows = plan.candidate_table().dropna(subset="against_uniform")
    y = alt.Y("name:N", title=None, sort=rows["name"].tolist(), axis=alt.Axis(labelLimit=260))
    base = alt.Chart(rows).encode(
        y=y, tooltip=told("name", "seeds", against_uniform=".4f", low=".4f", high=".4f")
    )
    x = alt.X("against_uniform:Q", title="loss minus uniform's (left is better)")
    points = base.mark_point(filled=True, size=90, color=BLUE, opacity=1).encode(x=x)
    known = base.transform_filter("isValid(datum.low)")
    lines = known.mark_rule(color=BLUE, strokeWidth=2).encode(x="low:Q", x2="high:Q")
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY, strokeDash=[4, 3])
    layers = alt.layer(zero.encode(x="zero:Q"), lines, points)
    chart: alt.LayerChart = finished(
        layers.properties(width=_WIDTH, height=max(80, 34 * len(rows))),
        "What was tried, against uniform",
    )
    return chart


def _layers(plan: AllocationPlan) -> pd.DataFrame:
    """A row a layer: its table, where its bar ends, and the words beside it."""
    table = plan.table()
    dim = (table["qk_dim"] + table["v_dim"]) / 2
    uniform = plan.budget / (4 * plan.width * len(plan.layers))
    return table.assign(
        dim=dim,
        end=table["heads"] * dim,
        reach=(table["heads"] * dim).clip(lower=uniform),  # where there is room for words
        label=[_label(layer) for layer in plan.layers],
    )


def in_words(plan: AllocationPlan) -> str:
    """Heads and their dimension by layer, layers that are alike together."""
    same = [(name, len(list(run))) for name, run in groupby(map(_label, plan.layers))]
    if len(same) == 1:
        where = "every layer" if len(plan.layers) > 1 else "the layer"
        return f"{same[0][0]} (heads × dimension) in {where}"
    said, first = [], 0
    for name, count in same:
        last = first + count - 1
        said.append(f"{name} in layer{'' if count == 1 else 's'} {_span(first, last)}")
        first = last + 1
    return f"Heads × dimension: {', '.join(said)}"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _label(layer: AttentionShape) -> str:
    same = layer.qk_dim == layer.v_dim
    return f"{layer.heads} × {layer.qk_dim if same else (layer.qk_dim, layer.v_dim)}"


def _heads(layers: pd.DataFrame) -> pd.DataFrame:
    """A row a head: where its cell begins and ends."""
    each = layers.loc[layers.index.repeat(layers["heads"])]
    number = each.groupby("layer").cumcount()
    return each.assign(start=number * each["dim"], end=(number + 1) * each["dim"])
