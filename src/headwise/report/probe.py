"""The probe's evidence as one figure: error against heads, or influential tokens."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.advise.probe.finding import ERROR, Finding
from headwise.report.lines.switches import colours_of, shown_of, with_switches
from headwise.report.theme import BLUE, FAINTEST, GREY, finished, logarithmic, ordered, told

_WIDTH, _HEIGHT = 460, 320


def draw(finding: Finding) -> alt.LayerChart:
    """Errors where there was training; else how many tokens matter, and at how many inputs."""
    figure: alt.LayerChart = finished(panel(finding), _title(finding), finding.notes[:2])
    return figure


def panel(finding: Finding, for_page: bool = False) -> alt.LayerChart:
    """The figure without words around it; on a page the legend is the page's."""
    errors = _known(finding)
    chart = _errors(errors, finding, for_page) if len(errors) else _counts(finding)
    return chart.properties(width=_WIDTH, height=_HEIGHT)


def has_marks(finding: Finding) -> bool:
    """Is there anything to draw?"""
    return bool(len(_known(finding)) or len(_counted(finding)))


def width_colours(finding: Finding) -> dict[str, str]:
    """The colour of each dimension of heads; nothing where all heads have the same."""
    widths = sorted(_known(finding)["head_dim"].unique())
    return dict(zip(map(str, widths), ordered(len(widths)), strict=True)) if widths[1:] else {}


def caption(finding: Finding) -> str:
    """How to read the figure."""
    errors = _known(finding)
    said = ["Points: every training; grey line: the smallest error."] if len(errors) else []
    if left := int((finding.evidence["quantity"] == ERROR).sum()) - len(errors):
        said.append(f"Not drawn: {left} that diverged or have an error of 0.")
    if finding.heads is not None:
        said.append("Dashed: the answer.")
        said += ["Shaded: where it lies in 95 of 100 cases."] if finding.interval else []
    return " ".join(said)


def _known(finding: Finding) -> pd.DataFrame:
    """The errors that a logarithmic axis has a place for."""
    rows = finding.evidence[finding.evidence["quantity"] == ERROR]
    return rows[np.isfinite(rows["value"].astype(float)) & (rows["value"] > 0)]


def _counted(finding: Finding) -> pd.DataFrame:
    """At how many inputs so many tokens matter."""
    return finding.evidence[finding.evidence["method"] == "sensitivity"]


def _title(finding: Finding) -> str:
    if finding.heads is None:
        return "No answer"
    return f"{_heads(finding.heads)}, probability {min(finding.confidence, 0.99):.2f}"


def _errors(rows: pd.DataFrame, finding: Finding, for_page: bool) -> alt.LayerChart:
    low, high = float(rows["value"].min()) / 1.8, float(rows["value"].max()) * 1.8
    x = alt.X("heads:O", title="attention heads h", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y(
        "value:Q",
        title="held-out error (1 = a constant)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=logarithmic(low, high),
    )
    points = shown_of(
        alt.Chart(rows.assign(head_dim=rows["head_dim"].map(str))), "head_dim", for_page
    )
    points = points.mark_point(filled=True, size=55, opacity=FAINTEST, color=BLUE).encode(
        x=x,
        y=y,
        tooltip=told("heads:O", "head_dim:O", "seed:O", value=".2e"),
    )
    if colours := width_colours(finding):
        legend = None if for_page else alt.Legend(orient="top")
        title = "dimensions a head"
        shape = alt.Shape(
            "head_dim:N", title=title, scale=alt.Scale(domain=list(colours)), legend=legend
        )
        points = points.encode(color=colours_of("head_dim:N", colours, title, legend), shape=shape)
    best = rows.groupby("heads", as_index=False)["value"].min()
    line = alt.Chart(best).mark_line(color=GREY, strokeWidth=2.5).encode(x=x, y=y)
    chart: alt.LayerChart = with_switches(alt.layer(*_answer(finding, x), line, points), for_page)
    return chart


def _counts(finding: Finding) -> alt.LayerChart:
    rows = _counted(finding)
    x = alt.X("heads:O", title="influential tokens", axis=alt.Axis(labelAngle=0))
    bars = (
        alt.Chart(rows)
        .mark_bar(color=BLUE, width=18)
        .encode(x=x, y=alt.Y("value:Q", title="inputs"), tooltip=["heads:O", "value:Q"])
    )
    return alt.layer(*_answer(finding, x), bars)


def _answer(finding: Finding, x: alt.X) -> list[alt.Chart]:
    """The 95 % interval as a band, a dashed line at the answer with its number above it."""
    if finding.heads is None:
        return []
    place = alt.Chart(pd.DataFrame({"heads": [finding.heads], "label": [_heads(finding.heads)]}))
    rule = place.mark_rule(strokeDash=[4, 4], strokeWidth=2, color=GREY).encode(x=x)
    text = place.mark_text(color=GREY, fontSize=15, baseline="bottom", dy=-5)
    label = text.encode(x=x, y=alt.value(0), text="label:N").properties(name="note_answer")
    if not finding.interval:
        return [rule, label]
    low, high = finding.interval
    inside = alt.Chart(pd.DataFrame({"heads": list(range(low, min(high, low + 64) + 1))}))
    band = inside.mark_rect(color=BLUE, opacity=0.12).encode(x=x)
    return [band, rule, label]


def _heads(count: int) -> str:
    return f"{count} head{'' if count == 1 else 's'}"
