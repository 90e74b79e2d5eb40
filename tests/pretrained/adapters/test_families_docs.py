"""The examples of docs/adapters.md run, and show what the page says."""

import re
from pathlib import Path

import pytest
import torch

from headwise.pretrained import FAMILIES

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"


def test_a_family_is_added_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    torch.manual_seed(0)
    names: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        FAMILIES.pop("hyperclovax", None)
    change, kept, refused = capsys.readouterr().out.strip().splitlines()[-3:]
    assert float(change.split()[-1]) < 1e-5
    assert 0.4 < float(kept.split()[-1]) <= 0.5
    assert "does not compute what is known of its family" in refused
    assert type(names["again"]).__name__ == "HyperCLOVAXForCausalLM"


def test_the_page_names_every_family() -> None:
    page = PAGE.read_text()
    assert [name for name in FAMILIES if name.split("_")[0] not in page] == []
