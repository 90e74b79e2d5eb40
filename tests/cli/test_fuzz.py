"""A few malformed inputs of every class; `python benchmarks/robustness/fuzz.py` sends hundreds."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "robustness"))

from fuzz import outcomes
from malformed import DEFECTS, Case, classes

EACH = 2


def test_malformed_input_never_ends_in_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HEADWISE_ENGINE", "stacked")  # nothing here is worth compiling for
    defects, tried = [], 0

    def on_case(case: Case, outcome: str, said: str) -> None:
        nonlocal tried
        tried += 1
        if outcome in DEFECTS:
            defects.append(f"{outcome}: {case.arguments}\n{said[-1500:]}")

    for number, each in enumerate(classes(tmp_path)):
        outcomes(each.cases, EACH, 7000 + number, on_case)
    assert not defects, "\n\n".join(defects)
    assert tried >= 36
