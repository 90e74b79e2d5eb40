"""One palette, one look, and figures as files of every kind."""

import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

import headwise.report
from headwise.core.errors import InputError
from headwise.report import theme
from headwise.report.files import figure_files, save_chart
from headwise.report.template import inline_json, inline_text, render_page

FOLDER = Path(headwise.report.__file__).parent
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


def chart() -> alt.Chart:
    data = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    drawn: alt.Chart = theme.finished(alt.Chart(data).mark_point().encode(x="x", y="y"), "A title")
    return drawn


def test_colours_are_named_in_one_place() -> None:
    for path in sorted(FOLDER.glob("*.py")):
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
        assert '"editor": false' in page


def test_another_ending_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of \.png, \.svg, \.pdf, \.html"):
        save_chart(chart(), tmp_path / "figure.jpg")


def test_figure_files_hold_the_data_too() -> None:
    files = figure_files("one", chart(), pd.DataFrame({"x": [1]}))
    assert set(files) == {"one.csv", "one.png", "one.svg"}
    assert files["one.png"].startswith(b"\x89PNG")
    assert files["one.svg"].startswith(b"<svg")


def test_what_is_put_into_a_script_cannot_leave_it() -> None:
    assert "<" not in inline_json({"a": "</script><script>alert(1)</script><!--"})
    assert "</" not in inline_text("a,b\n</script>")
    page = render_page(
        "result.html.j2",
        {"one": chart()},
        title="<b>",
        sentences=["<i>"],
        figures=["one"],
        columns=["x"],
        rows=[["1"]],
    )
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "<li>&lt;i&gt;</li>" in page
    assert page.count("<script>") == page.count("</script>")
