"""The reliability diagram: of answers at a stated confidence, the share that is right."""

from typing import Any

import altair as alt
import pandas as pd

from headwise.advise.probe.judged.score import ZooEvaluation
from headwise.report.theme import GREY, PALETTE, finished

_SIDE = 320


def draw(evaluation: ZooEvaluation) -> alt.LayerChart:
    """A point a range of confidence, with its interval; the diagonal is perfect calibration."""
    rows = evaluation.reliability
    x = alt.X("stated:Q", title="stated confidence", scale=_unit())
    diagonal = (
        alt.Chart(pd.DataFrame({"stated": [0.0, 1.0], "right": [0.0, 1.0]}))
        .mark_line(color=GREY, strokeDash=[4, 4])
        .encode(x=x, y=alt.Y("right:Q", title="share of answers that are right", scale=_unit()))
    )
    layers: list[Any] = [diagonal]
    if len(rows):
        colour = alt.Color("given:N", title="given as", scale=alt.Scale(range=list(PALETTE)))
        bars = alt.Chart(rows).mark_rule().encode(x=x, y="low:Q", y2="high:Q", color=colour)
        points = (
            alt.Chart(rows)
            .mark_point(filled=True, opacity=1, size=70)
            .encode(
                x=x,
                y="right:Q",
                color=colour,
                tooltip=["given", "from", "to", "answers", "stated", "right", "low", "high"],
            )
        )
        layers += [bars, points]
    sized = alt.layer(*layers).properties(width=_SIDE, height=_SIDE)
    chart: alt.LayerChart = finished(sized, _title(evaluation), _subtitle(evaluation))
    return chart


def _unit() -> alt.Scale:
    return alt.Scale(domain=[0, 1])


def _title(evaluation: ZooEvaluation) -> str:
    tasks = len({each.assignment.index for each in evaluation.attempts})
    return f"Confidence and truth on {tasks} tasks of the zoo"


def _subtitle(evaluation: ZooEvaluation) -> list[str]:
    return [
        f"{row['given']}: {row['confident and wrong']} of {row['tasks']} confident and wrong"
        for row in evaluation.totals.to_dict("records")
    ]
