"""Charts of a compression: what is left of each head, and how far its attention moves."""

import altair as alt
import pandas as pd

from headwise.pretrained.compressed import Compressed
from headwise.report.inspection import heat_map
from headwise.report.theme import BLUE, GREY, finished


def charts(result: Compressed) -> dict[str, alt.Chart]:
    """The charts by name."""
    heads = result.heads()
    largest = float(result.plan.model.get("head_dim") or heads[["qk_dim", "v_dim"]].max().max())
    shown = {
        "qk_dim": ("query–key dimensions left", largest),
        "v_dim": ("value dimensions left", largest),
        "bound": ("bound on the change of attention", 1.0),
        "measured": ("largest change of attention seen", 1.0),
    }
    return {
        name: heat_map(heads, name, title, ends=(0.0, top))
        for name, (title, top) in shown.items()
        if name in heads
    }


def bars(result: Compressed) -> dict[str, alt.LayerChart]:
    """Heads and dimensions that every layer keeps, beside what it had."""
    heads = result.heads()
    full = float(result.plan.model.get("head_dim") or heads[["qk_dim", "v_dim"]].max().max())
    count = (
        float(
            max(max(h for g in each.groups for h in (*g.heads, 0)) for each in result.plan.layers)
        )
        + 1
    )
    layers = pd.DataFrame({"layer": range(len(result.plan.layers))})
    left = heads.groupby("layer").agg(
        heads=("head", "nunique"), queries=("qk_dim", "mean"), values=("v_dim", "mean")
    )
    rows = layers.merge(left, on="layer", how="left").fillna(0)
    shown = {
        "heads left": ("heads", "heads", count),
        "query–key dimensions a head": ("queries", "dimensions, mean over heads", full),
        "value dimensions a head": ("values", "dimensions, mean over heads", full),
    }
    return {
        title: _beside_original(rows.assign(original=whole), name, axis)
        for title, (name, axis, whole) in shown.items()
    }


def _beside_original(rows: pd.DataFrame, name: str, axis: str) -> alt.LayerChart:
    x = alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(rows).encode(x=x, tooltip=["layer", name, "original"])
    before = base.mark_bar(color=GREY, opacity=0.35).encode(y=alt.Y("original:Q", title=axis))
    after = base.mark_bar(color=BLUE, width={"band": 0.55}).encode(y=alt.Y(f"{name}:Q", title=axis))
    return alt.layer(before, after).properties(width=330, height=200)


def draw(result: Compressed) -> alt.ConcatChart:
    """All of them, side by side."""
    parts = alt.concat(*charts(result).values(), columns=2).resolve_scale(color="independent")
    return finished(parts, result.title, result.sentences()[:1])
