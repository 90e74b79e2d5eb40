"""The examples of docs/pretrained.md run, on a small random checkpoint in the real one's place."""

import re
from pathlib import Path

import pytest

from headwise.pretrained import Compressed, Inspection

PAGE = Path(__file__).parents[2] / "docs" / "pretrained.md"


def test_the_examples_on_the_page_run(
    checkpoint: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = checkpoint.parent
    checkpoint.rename(folder / "stories15M")
    text.rename(folder / "stories.txt")
    monkeypatch.chdir(folder)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert isinstance(names["result"], Compressed)
    assert isinstance(names["inspection"], Inspection)
    assert type(names["again"]).__name__ == "LlamaForCausalLM"
    printed = capsys.readouterr().out
    assert "attention parameters" in printed
    assert re.search(r"^0\.5 ", printed, re.MULTILINE)
    for file in ("heads.html", "heads.png", "smaller/model.safetensors"):
        assert (folder / file).is_file()
