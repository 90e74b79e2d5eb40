"""The probe's evidence as one figure: error against heads, or influential tokens."""

import altair as alt
import numpy as np
import pandas as pd

from headwise.advise.probe.finding import ERROR, Finding
from headwise.report.theme import BLUE, GREY, decades, finished, ordered

_WIDTH, _HEIGHT = 460, 320


def draw(finding: Finding) -> alt.LayerChart:
    """Errors where there was training; else how many tokens matter, and at how many inputs."""
    errors = _known(finding)
    chart = _errors(errors, finding) if len(errors) else _counts(finding)
    sized = chart.properties(width=_WIDTH, height=_HEIGHT)
    figure: alt.LayerChart = finished(sized, _title(finding), finding.notes[:2])
    return figure


def evidence_figures(finding: Finding) -> list[tuple[alt.LayerChart, alt.LayerChart, str]]:
    """For a page: the panel, the whole figure and how to read it; nothing if there is no mark."""
    errors = _known(finding)
    if not len(errors) and not len(_counted(finding)):
        return []
    whole = draw(finding)
    panel = whole.copy()
    panel.title, panel.config = alt.Undefined, alt.Undefined
    said = ["Points: every training; grey line: the smallest error."] if len(errors) else []
    if left := int((finding.evidence["quantity"] == ERROR).sum()) - len(errors):
        said.append(f"Not drawn: {left} that diverged or have an error of 0.")
    if finding.heads is not None:
        said.append("Dashed: the answer.")
        said += ["Shaded: where it lies in 95 of 100 cases."] if finding.interval else []
    return [(panel, whole, " ".join(said))]


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


def _errors(rows: pd.DataFrame, finding: Finding) -> alt.LayerChart:
    x = alt.X("heads:O", title="attention heads h", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y(
        "value:Q",
        title="held-out error (1 = a constant)",
        scale=alt.Scale(type="log"),
        axis=decades(-16, 3),
    )
    widths = sorted(rows["head_dim"].unique())
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, size=55, opacity=0.8)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "head_dim:N",
                title="dimensions a head",
                scale=alt.Scale(domain=widths, range=ordered(len(widths))),
                legend=alt.Legend(orient="top"),
            ),
            shape=alt.Shape(
                "head_dim:N", title="dimensions a head", scale=alt.Scale(domain=widths)
            ),
            tooltip=["heads:O", "head_dim:O", "seed:O", alt.Tooltip("value:Q", format=".2e")],
        )
    )
    best = rows.groupby("heads", as_index=False)["value"].min()
    line = alt.Chart(best).mark_line(color=GREY, strokeWidth=2.5).encode(x=x, y=y)
    return alt.layer(*_answer(finding, x), line, points)


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
