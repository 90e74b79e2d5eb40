"""One palette, one look, and figures as files of every kind."""

import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

import headwise.report
from headwise.core.errors import InputError
from headwise.report import theme
from headwise.report.files import figure_files, printed, save_chart, svg_of
from headwise.report.pages.markup import command, inline_json, linked

FOLDER = Path(headwise.report.__file__).parent
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


def chart() -> alt.Chart:
    data = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    drawn: alt.Chart = theme.finished(alt.Chart(data).mark_point().encode(x="x", y="y"), "A title")
    return drawn


def test_colours_are_named_in_one_place() -> None:
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name != "theme.py":
            found = re.findall(r"['\"]#[0-9a-fA-F]{6}['\"]", path.read_text())
            assert not found, f"{path.name} has colours of its own: {found}"


@pytest.mark.parametrize("kind", sorted(BEGINNINGS))
def test_a_figure_is_written_as_what_its_name_says(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"figure.{kind}"
    save_chart(chart(), path)
    assert path.read_bytes().lstrip().startswith(BEGINNINGS[kind])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if kind == "html":
        page = path.read_text()
        assert not re.search(r"<(script|link)[^>]+(src|href)\s*=\s*[\"']?https?:", page)
        assert '"actions": false' in page


def test_another_ending_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of \.png, \.svg, \.pdf, \.html"):
        save_chart(chart(), tmp_path / "figure.jpg")


def test_figure_files_hold_the_data_too() -> None:
    files = figure_files("one", printed(chart()), pd.DataFrame({"x": [1]}))
    assert set(files) == {"one.csv", "one.png", "one.svg", "one.pdf"}
    assert files["one.png"].startswith(b"\x89PNG")
    assert files["one.svg"].startswith(b"<svg")
    assert files["one.pdf"].startswith(b"%PDF")


def test_a_figure_for_print_is_no_wider_than_a_paper() -> None:
    wide = chart().properties(width=2000)
    width = re.search(r'width="([\d.]+)pt"', printed(wide).svg)
    assert width is not None
    assert float(width[1]) <= 468


def luminance(colour: str) -> float:
    """WCAG 2: of an sRGB colour."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted(map(luminance, (one, two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", theme.GROUNDS)
def test_marks_are_seen_on_paper_and_at_night(ground: str) -> None:
    for colour in (*theme.PALETTE, *theme.RAMP, theme.GREY):
        assert contrast(colour, ground) >= 3, (colour, ground, contrast(colour, ground))
    for colour in (*theme.RAMP, theme.GREY):
        assert contrast(mixed(colour, ground, theme.FAINTEST), ground) >= 3, (colour, ground)


def mixed(colour: str, ground: str, opacity: float) -> str:
    """What is seen of the colour on the ground."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


def test_what_is_put_into_a_script_cannot_leave_it() -> None:
    assert "<" not in inline_json({"a": "</script><script>alert(1)</script><!--"})


def test_numbers_of_arxiv_become_links_and_names_stay_text() -> None:
    assert 'href="https://arxiv.org/abs/2510.06662"' in linked("see arXiv 2510.06662, table 2")
    assert linked("<script>") == "&lt;script&gt;"
    assert linked("0.2510 and 12.3") == "0.2510 and 12.3"


def test_a_command_breaks_between_its_words_only() -> None:
    words = " ".join(f'<span class="word">{each}</span>' for each in ("run", "&lt;x&gt;", "--tier"))
    assert command("run <x> --tier") == words
    assert linked("see `run <x> --tier`") == f"see <code>{words}</code>"
    assert linked("or --data, not x--y") == (
        'or <code><span class="word">--data</span></code>, not x--y'
    )


def test_a_number_of_any_size_is_drawn() -> None:
    data = {"values": [{"x": 1, "y": 10**35}, {"x": 2, "y": 10**36}]}
    encoding = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "nominal"}}
    assert "1e+35" in svg_of({"data": data, "mark": "point", "encoding": encoding})
