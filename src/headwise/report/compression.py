"""Charts of a compression: loss against size, what is left of layers and heads."""

from itertools import product
from typing import Literal

import altair as alt
import pandas as pd

from headwise.pretrained.compressed import Compressed
from headwise.report.inspection import heat_map
from headwise.report.lines.switches import colours_of, shown_of, with_switches
from headwise.report.theme import BLUE, GREEN, GREY, ORANGE, PURPLE, finished, told

_OTHERS = {"uniform-svd": GREEN, "prune-heads": PURPLE, "random": GREY}


def charts(result: Compressed) -> dict[str, alt.Chart]:
    """The heat maps by title."""
    heads = result.heads()
    if heads.empty:
        return {}
    largest = float(result.plan.model["head_dim"])
    shown = {
        "qk_dim": ("Query–key dimensions left", largest),
        "v_dim": ("Value dimensions left", largest),
        "bound": ("Bound on the change of attention", 1.0),
        "measured": ("Largest change of attention seen", 1.0),
    }
    return {
        title: heat_map(_with_removed(result, heads, name), name, "", ends=(0.0, top))
        for name, (title, top) in shown.items()
        if name in heads
    }


def _with_removed(result: Compressed, heads: pd.DataFrame, name: str) -> pd.DataFrame:
    """The column for every head that the model had; a head that was removed has no number."""
    places = product(range(len(result.plan.layers)), range(int(result.plan.model["heads"])))
    every = pd.DataFrame(places, columns=["layer", "head"])
    return every.merge(heads[["layer", "head", name]], on=["layer", "head"], how="left")


def method_colours(result: Compressed) -> dict[str, str]:
    """The colour of this method, and of each baseline that was measured."""
    own, tried = result.plan.method, {point.method for point in result.sizes}
    others = {name: colour for name, colour in _OTHERS.items() if name in tried and name != own}
    return {own: BLUE, **others}


def loss_by_size(result: Compressed, for_page: bool = False) -> alt.LayerChart:
    """Damage against the parameters kept: this method's curve, the baselines, and the choice."""
    rows = pd.DataFrame(
        [
            {"method": p.method, "kept": p.kept, "predicted": p.predicted}
            | {"damage": p.damage, "low": p.low, "high": p.high}
            for p in result.sizes
        ]
    )
    own, judged = result.plan.method, result.evaluation
    least = min(float(rows["kept"].min()), judged.attention_parameters.ratio)
    x = alt.X(
        "kept:Q",
        title="attention parameters kept",
        scale=alt.Scale(domain=[least, 1.0], nice=False, padding=14),
        axis=alt.Axis(format="%", values=[share / 10 for share in range(1, 11)], grid=False),
    )
    title = f"damage, {judged.unit}"
    ends = _ends(rows, own, judged.damage)
    y = alt.Y("damage:Q", title=title, scale=alt.Scale(domain=ends, nice=False))
    legend = None if for_page else alt.Legend(orient="top", columns=2, symbolOpacity=1)
    colour = colours_of("method:N", method_colours(result), None, legend)
    base = shown_of(alt.Chart(rows), "method", for_page)
    numbers = dict.fromkeys(("damage", "low", "high", "predicted"), ".3g")
    base = base.encode(x=x, color=colour, tooltip=told("method", kept=".0%", **numbers))
    measured = base.transform_filter("isValid(datum.damage)")
    bars = measured.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, clip=True)
    chosen = pd.DataFrame(
        [
            {
                "kept": judged.attention_parameters.ratio,
                "damage": judged.damage,
                "label": "this model",
            }
        ]
    )
    mark = alt.Chart(chosen).encode(x=x, y=y)
    # Damage falls to the right: there, above the point, is room, but for the last sixth.
    side: Literal["left", "right"] = "left" if chosen["kept"][0] < 1 - (1 - least) / 6 else "right"
    zero = alt.Chart(pd.DataFrame({"damage": [0.0]})).mark_rule(color=GREY, strokeDash=[4, 3])
    chart = alt.layer(
        zero.encode(y=y),
        base.transform_filter("isValid(datum.predicted)")
        .mark_line(strokeWidth=2, strokeDash=[6, 4])
        .encode(y=alt.Y("predicted:Q", title=title)),
        bars.encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        measured.mark_line(strokeWidth=2.5).encode(y=y),
        measured.mark_point(filled=True, size=65, opacity=1).encode(y=y),
        mark.mark_point(shape="diamond", size=220, filled=True, color=ORANGE, opacity=1),
        mark.mark_text(
            align=side, dx=12 if side == "left" else -12, dy=-12, fontSize=15, color=GREY
        )
        .encode(text="label:N")
        .properties(name="note_chosen"),
    ).properties(width=460, height=340)
    whole: alt.LayerChart = with_switches(chart, for_page)
    return whole


def _ends(rows: pd.DataFrame, own: str, damage: float) -> list[float]:
    """All that was measured and predicted; intervals of this method, but not of the baselines."""
    ours = rows[rows["method"] == own]
    heights = pd.concat([rows["damage"], rows["predicted"], ours["low"], ours["high"]])
    known = [0.0, damage, *heights.dropna().astype(float)]
    margin = 0.06 * (max(known) - min(known) or 1.0)
    return [min(known) - margin, max(known) + margin]


def bars(result: Compressed) -> dict[str, alt.LayerChart]:
    """Heads and dimensions that every layer keeps, beside what it had."""
    heads = result.heads()
    model, layers = result.plan.model, range(len(result.plan.layers))
    full, count = float(model["head_dim"]), float(model["heads"])
    rows = pd.DataFrame({"layer": layers, "heads": 0.0, "queries": 0.0, "values": 0.0})
    if len(heads):
        left = heads.groupby("layer").agg(
            heads=("head", "nunique"), queries=("qk_dim", "mean"), values=("v_dim", "mean")
        )
        rows = left.reindex(layers, fill_value=0.0).rename_axis("layer").reset_index()
    shown = {
        "Heads left": ("heads", "heads", count),
        "Query–key dimensions a head": ("queries", "mean over heads", full),
        "Value dimensions a head": ("values", "mean over heads", full),
    }
    return {
        title: _beside_original(rows.assign(original=whole), name, axis)
        for title, (name, axis, whole) in shown.items()
    }


def _beside_original(rows: pd.DataFrame, name: str, axis: str) -> alt.LayerChart:
    spaced = alt.Axis(labelAngle=0, labelOverlap="parity", labelSeparation=4)
    x = alt.X("layer:O", title="layer", axis=spaced)
    base = alt.Chart(rows).encode(x=x, tooltip=told("layer", **{name: ".3~g", "original": ".3~g"}))
    before = base.mark_bar(color=GREY, opacity=0.35).encode(y=alt.Y("original:Q", title=axis))
    after = base.mark_bar(color=BLUE, width={"band": 0.55}).encode(y=alt.Y(f"{name}:Q", title=axis))
    return alt.layer(before, after).properties(width=330, height=200)


def draw(result: Compressed) -> alt.ConcatChart:
    """The heat maps, side by side."""
    titled = [part.properties(title=title) for title, part in charts(result).items()]
    parts = alt.concat(*titled, columns=2).resolve_scale(color="independent")
    return finished(parts, result.title, result.sentences()[:1])
