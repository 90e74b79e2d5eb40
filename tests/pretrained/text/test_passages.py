"""What an encoder reads of a text: whole paragraphs, however its lines are broken."""

import random
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import common_words, small_model

from headwise.pretrained import text_material
from headwise.pretrained.text.calibration import packaged_text
from headwise.pretrained.text.paragraphs import paragraphs

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


def test_a_speech_is_read_whole(tmp_path: Path) -> None:
    verses = [textwrap.wrap(each, 45)[:6] for each in PARAGRAPHS]
    speeches = ["\n".join(["First Citizen:", *each]) for each in verses]
    whole = read("\n\n".join(speeches), tmp_path)
    assert whole == read("\n".join(" ".join(each.split()) for each in speeches), tmp_path)


@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_list_is_read_line_by_line(between: str) -> None:
    draw = random.Random(3)
    items = [textwrap.shorten(each, draw.randint(45, 95), placeholder="") for each in PARAGRAPHS]
    assert paragraphs(between.join(items)) == items
    assert paragraphs("\n".join(items[:90]) + "\n\n" + "\n".join(items[90:])) == items
    log = [f"2026-11-19 12:{n:02}:07 worker {n:02} has read {n * 37:05} tokens" for n in range(60)]
    assert paragraphs("\n".join(log)) == log
    molecules = ["C1" * draw.randint(20, 40) + "O" for _ in range(50)]
    assert paragraphs("\n".join(molecules)) == molecules


@pytest.mark.parametrize("mark", ["    {}", "- {}", "> {}"])
def test_paragraphs_without_blank_lines_are_put_together(mark: str) -> None:
    """Told by the first line's place, a sign before it, or a sign before every line."""
    later = "> " if mark == "> {}" else "  "
    between = "\n>\n" if mark == "> {}" else "\n"
    broken = [
        textwrap.fill(mark.format(each), 72, subsequent_indent=later, drop_whitespace=True)
        for each in PARAGRAPHS
    ]
    found = paragraphs(between.join(broken))
    assert "\n".join(found) == "\n".join(broken)  # none is lost, none cut
    assert 0.75 * len(broken) < len(set(found) & set(broken)) <= len(broken)  # a full last line


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n\n"])
def test_blank_lines_have_any_form(blank: str, tmp_path: Path) -> None:
    broken = [textwrap.fill(each, 70, break_on_hyphens=False) for each in PARAGRAPHS]
    assert read(blank.join(broken), tmp_path) == read("\n\n".join(PARAGRAPHS), tmp_path)


@given(st.text(alphabet=st.sampled_from("ab \n\r\t>-—é\u2028\f0"), max_size=300))
def test_no_line_is_lost_whatever_it_is_made_of(text: str) -> None:
    lines = [line for line in text.splitlines() if re.search(r"\w", line)]
    assert "\n".join(paragraphs(text)) == "\n".join(lines)
