"""The style and scripts of pages, squeezed: the same text but for comments and layout."""

import re
from pathlib import Path

import pytest

from headwise.report.pages.squeeze import squeezed
from house import SOURCE

FILES = sorted((SOURCE / "headwise" / "report" / "pages").glob("*.[cj]s*"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_but_comments_and_layout_is_lost(path: Path) -> None:
    text = path.read_text("utf-8")
    found = squeezed(path.name, text)
    spoken = re.sub(r"(?m)(^|  )// .*$|/\*[^*]*\*/", "", text)
    assert re.sub(r"\s", "", found) == re.sub(r"\s", "", spoken)
    assert len(found) < len(text)


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("let a = 1;\nlet b;\n", "let a = 1;let b;"),
        ("let f = () => {}\n(g)();\n", "let f = () => {}\n(g)();"),  # the break ends a statement
        ("return\nx;", "return\nx;"),
        ("f(1,  // one\n  2);\n// more\n", "f(1,2);"),
        ('let s = "http://a  b";', 'let s = "http://a  b";'),
    ],
)
def test_a_line_break_that_may_count_stays(script: str, wanted: str) -> None:
    assert squeezed("a.js", script) == wanted


def test_strings_in_the_style_keep_their_words() -> None:
    style = 'a::after {\n  content: " ▲ x";  /* a sign */\n}\na   b > c { margin: 0 1px }\n'
    assert squeezed("a.css", style) == 'a::after{content: " ▲ x";}a b > c{margin: 0 1px}'
