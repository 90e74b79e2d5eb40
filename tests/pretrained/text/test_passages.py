"""What an encoder reads of a text: whole paragraphs, however its lines are broken."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from small_models import common_words, small_model

from headwise.pretrained import text_material
from headwise.pretrained.text.calibration import packaged_text

LINES = packaged_text("calibration").splitlines()
PARAGRAPHS = [line for line in LINES if 200 < len(line) < 2000][:200]


def read(text: str, folder: Path) -> list[Any]:
    """All that is judged by, without the packaged text."""
    path = folder / "text.txt"
    path.write_text(text, "utf-8")
    material = text_material(small_model("bert"), common_words(), path, tokens=2000, length=32)
    return [batch["input_ids"].tolist() for batch in material.held_out]


def test_lines_broken_by_hand_are_the_paragraphs_they_were(tmp_path: Path) -> None:
    whole = read("\n\n".join(PARAGRAPHS), tmp_path)
    for width in (60, 72, 80, 100):
        broken = [textwrap.fill(each, width, break_on_hyphens=False) for each in PARAGRAPHS]
        assert read("\n\n".join(broken), tmp_path) == whole


def test_a_speech_is_read_whole_and_a_list_line_by_line(tmp_path: Path) -> None:
    verses = [textwrap.wrap(each, 45, break_on_hyphens=False)[:6] for each in PARAGRAPHS]
    speeches = ["\n".join(["First Citizen:", *each]) for each in verses]
    whole = read("\n\n".join(speeches), tmp_path)
    assert whole == read("\n".join(" ".join(each.split()) for each in speeches), tmp_path)
    lines = [line for each in verses for line in each if len(line) >= 40]
    alone = read("\n".join(lines), tmp_path)
    assert alone != whole
    two_lists = "\n".join(lines[:100]) + "\n\n" + "\n".join(lines[100:])
    assert read(two_lists, tmp_path) == alone


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n\n"])
def test_blank_lines_have_any_form(blank: str, tmp_path: Path) -> None:
    broken = [textwrap.fill(each, 70, break_on_hyphens=False) for each in PARAGRAPHS]
    assert read(blank.join(broken), tmp_path) == read("\n\n".join(PARAGRAPHS), tmp_path)
