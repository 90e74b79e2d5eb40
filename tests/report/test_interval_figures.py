"""Figures of intervals: labels by their mean, or as the rows stand."""

import pandas as pd
import pytest

from headwise.lab.study import IntervalFigure
from headwise.report.intervals import interval_panels

ROWS = pd.DataFrame(
    {
        "label": ["1 head", "2 heads", "4 heads", "8 heads"],
        "panel": "T = 8",
        "group": "all",
        "mean": [0.1, 0.4, 0.3, 0.2],
        "low": 0.0,
        "high": 0.5,
        "seeds": 4,
    }
)


@pytest.mark.parametrize("ordered", [True, False])
def test_labels_stand_as_asked(ordered: bool) -> None:
    figure = IntervalFigure("held-out", "t", "c", "a", lambda rows: rows, ordered=ordered)
    (panel,) = interval_panels(figure, ROWS).values()
    drawn = panel.to_dict()["layer"][0]["encoding"]["y"]["sort"]
    expected = ROWS if ordered else ROWS.sort_values("mean")
    assert drawn == expected["label"].tolist()


def test_panels_stand_in_the_order_of_the_rows() -> None:
    figure = IntervalFigure("effects", "t", "c", "a", lambda rows: rows, ordered=True)
    both = pd.concat([ROWS, ROWS.assign(panel="T = 16")])
    assert list(interval_panels(figure, both)) == ["T = 8", "T = 16"]


def test_groups_stand_beside_each_other_only_where_they_share_a_line() -> None:
    figure = IntervalFigure("time", "t", "c", "a", lambda rows: rows)
    alone = ROWS.assign(group=["one", "two", "one", "two"])
    both = pd.concat([ROWS.assign(group="one"), ROWS.assign(group="two")])
    for rows, beside in ((alone, False), (both, True)):
        (panel,) = interval_panels(figure, rows).values()
        assert ("yOffset" in panel.to_dict()["layer"][0]["encoding"]) is beside
