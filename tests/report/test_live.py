"""The page of a study that runs."""

from pathlib import Path

import pytest

from headwise.lab.store import Store
from headwise.report.pages import live
from headwise.studies import find_study


def test_a_page_is_there_before_the_first_run_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LEAST_SECONDS", 0.0)
    with Store(tmp_path / "results.db", write=True) as results:
        page = live.LivePage(find_study("saturation"), "quick", tmp_path)
        page.renew(results, 0.25, "0 runs finished, 12 steps/s")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Does a long sequence forgive heads of low rank?" in text
    assert "0 runs finished, 12 steps/s" in text
    assert "No figure yet" in text
