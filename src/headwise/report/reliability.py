"""The reliability diagram: of answers at a stated confidence, the share that is right."""

from typing import Any

import altair as alt
import pandas as pd

from headwise.advise.probe.judged.score import ZooEvaluation
from headwise.report.theme import GREY, PALETTE, finished

_SIDE = 360
_LEAST_SAID = 0.5  # less confident answers are rarely given


def draw(evaluation: ZooEvaluation) -> alt.LayerChart:
    """A point a range of confidence, with its interval; the diagonal is perfect calibration."""
    rows = evaluation.reliability
    least = _LEAST_SAID if not len(rows) or rows["from"].min() >= _LEAST_SAID else 0.0
    x = _share("stated", "stated confidence", least)
    y = _share("right", "share of answers that are right", 0.0)
    diagonal = (
        alt.Chart(pd.DataFrame({"stated": [least, 1.0], "right": [least, 1.0]}))
        .mark_line(color=GREY, strokeDash=[4, 4])
        .encode(x=x, y=y)
    )
    layers: list[Any] = [diagonal]
    if len(rows):
        colour = alt.Color("given:N", title="given as", scale=alt.Scale(range=list(PALETTE)))
        bars = alt.Chart(rows).mark_rule().encode(x=x, y="low:Q", y2="high:Q", color=colour)
        points = (
            alt.Chart(rows)
            .mark_point(filled=True, opacity=0.8)
            .encode(
                x=x,
                y="right:Q",
                color=colour,
                size=alt.Size(
                    "answers:Q",
                    title="answers",
                    scale=alt.Scale(range=[30, 300], zero=False),
                    legend=alt.Legend(tickCount=3),
                ),
                tooltip=["given", "from", "to", "answers", "stated", "right", "low", "high"],
            )
        )
        layers += [bars, points]
    sized = alt.layer(*layers).properties(width=_SIDE, height=_SIDE)
    chart: alt.LayerChart = finished(sized, _title(evaluation), _subtitle(evaluation))
    return chart


def _share(field: str, title: str, least: float) -> Any:
    channel = alt.X if field == "stated" else alt.Y
    axis = alt.Axis(labelFlush=False, tickCount=6)
    return channel(f"{field}:Q", title=title, scale=alt.Scale(domain=[least, 1]), axis=axis)


def _title(evaluation: ZooEvaluation) -> str:
    tasks = len({each.assignment.index for each in evaluation.attempts})
    return f"Confidence and truth on {tasks} tasks of the zoo"


def _subtitle(evaluation: ZooEvaluation) -> list[str]:
    return [
        f"{row['given']}: {row['confident and wrong']} of {row['tasks']} confident and wrong"
        for row in evaluation.totals.to_dict("records")
    ]
