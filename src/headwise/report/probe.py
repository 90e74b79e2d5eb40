"""The probe's evidence as one figure: error against heads, or influential tokens."""

import altair as alt
import pandas as pd

from headwise.advise.probe.finding import ERROR, Finding
from headwise.report.theme import BLUE, GREY, PALETTE, finished

_WIDTH, _HEIGHT = 420, 260


def draw(finding: Finding) -> alt.LayerChart:
    """Errors where there was training; else how many tokens matter, and at how many inputs."""
    errors = finding.evidence[finding.evidence["quantity"] == ERROR]
    chart = _errors(errors, finding) if len(errors) else _counts(finding)
    sized = chart.properties(width=_WIDTH, height=_HEIGHT)
    figure: alt.LayerChart = finished(sized, _title(finding), finding.notes[:2])
    return figure


def _title(finding: Finding) -> str:
    if finding.heads is None:
        return "No answer"
    return f"{finding.heads} head{'s' if finding.heads > 1 else ''}, probability " + (
        f"{min(finding.confidence, 0.99):.2f}"
    )


def _errors(rows: pd.DataFrame, finding: Finding) -> alt.LayerChart:
    x = alt.X("heads:O", title="attention heads h", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y(
        "value:Q",
        title="held-out error (1 = a constant)",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format=".0e", values=[10.0**power for power in range(-9, 3)]),
    )
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, size=45, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "head_dim:N",
                title="dimensions a head",
                scale=alt.Scale(range=list(PALETTE[:2])),
            ),
            shape=alt.Shape("head_dim:N", title="dimensions a head"),
            tooltip=["heads:O", "head_dim:O", "seed:O", alt.Tooltip("value:Q", format=".2e")],
        )
    )
    best = rows.groupby("heads", as_index=False)["value"].min()
    layers = [alt.Chart(best).mark_line(color=GREY).encode(x=x, y=y), points]
    return alt.layer(*layers, *_answer(finding, x))


def _counts(finding: Finding) -> alt.LayerChart:
    rows = finding.evidence[finding.evidence["method"] == "sensitivity"]
    x = alt.X("heads:O", title="influential tokens", axis=alt.Axis(labelAngle=0))
    bars = (
        alt.Chart(rows)
        .mark_bar(color=BLUE, width=18)
        .encode(x=x, y=alt.Y("value:Q", title="inputs"), tooltip=["heads:O", "value:Q"])
    )
    return alt.layer(bars, *_answer(finding, x))


def _answer(finding: Finding, x: alt.X) -> list[alt.Chart]:
    """A dashed line at the answer."""
    if finding.heads is None:
        return []
    place = alt.Chart(pd.DataFrame({"heads": [finding.heads]}))
    return [place.mark_rule(strokeDash=[4, 4], color=GREY).encode(x=x)]
