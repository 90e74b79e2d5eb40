"""How results show themselves: names imported when used, figures, tables and text."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headwise.core.lazy import Drawn, named
from headwise.core.shown import Printed, Tabled


class Chart:
    """What the report would draw."""

    def __init__(self, drawn: object) -> None:
        self.drawn = drawn

    def _repr_mimebundle_(self, include: Any, exclude: Any) -> dict[str, str]:
        return {"text/html": f"a chart of {self.drawn}"}


class Sketch(Drawn, Tabled, Printed):
    """A result of everything."""

    drawn_by: ClassVar[str] = f"{__name__}:Chart"

    def records(self) -> list[dict[str, Any]]:
        return [{"heads": 1, "error": math.inf}, {"heads": 2, "error": 0.5}]

    def __str__(self) -> str:
        return "error < 1 & more"


def test_names_are_found_where_they_are_said_to_be() -> None:
    assert named("json:dumps") is json.dumps
    assert named("json") is json
    with pytest.raises(ModuleNotFoundError):
        named("headwise.nowhere:name")
    with pytest.raises(AttributeError):
        named("json:nothing")


def test_a_result_is_drawn_where_it_says() -> None:
    sketch = Sketch()
    assert sketch.figure().drawn is sketch
    assert sketch._repr_mimebundle_() == {"text/html": "a chart of error < 1 & more"}


def test_a_result_goes_to_pandas_and_to_json() -> None:
    assert Sketch().to_pandas()["heads"].tolist() == [1, 2]
    rows = json.loads(Sketch().to_json())
    assert rows == [{"heads": 1, "error": None}, {"heads": 2, "error": 0.5}]


def test_a_notebook_shows_the_text() -> None:
    assert Sketch()._repr_html_() == "<pre>error &lt; 1 &amp; more</pre>"


def test_what_has_no_rows_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Tabled().records()


def test_core_loads_neither_torch_nor_pandas() -> None:
    modules = sorted(Path(__file__).parents[2].glob("src/headwise/core/[a-z]*.py"))
    names = ", ".join(f"headwise.core.{path.stem}" for path in modules)
    code = f"import sys, {names}; print({{'torch', 'pandas', 'altair'}} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
