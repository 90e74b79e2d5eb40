"""What a figure's marks and its legend do on every kind of page that has them."""

import json
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pandas as pd
import pytest
from tabs import opened

MARKS = """[...document.querySelectorAll(".chart svg [aria-roledescription]")].filter(
    each => /^(point|bar|rect mark)$/.test(each.getAttribute("aria-roledescription")))"""
LABELS = f"{MARKS}.map(each => each.getAttribute('aria-label'))"
SEEN = "document.querySelectorAll('.chart svg [class*=mark-] path[d]:not(.away)').length"


class Pointed(NamedTuple):
    """A mark by what is said of it, and the number of the page's data that it must tell.

    `saved` is the figure whose own data hold the number, where the page's do not.
    """

    words: tuple[str, ...]
    rows: str
    column: str
    number: str
    saved: str = ""


POINTED_AT = {
    "study": Pointed(
        ("heads: 4;", "length, tokens: 8;", "smallest NMSE"),
        "heads == 4 and length == 8",
        *("error", ".2e"),
    ),
    "finding": Pointed(("heads: 2;", "seed: 1;"), "heads == 2 and seed == 1", "value", ".2e"),
    "plan": Pointed(("layer: 2;",), "layer == 2", "parameters", ","),
    "compression": Pointed(("layer: 1;", "original: 8"), "layer == 1", "qk_dim", "g"),
    "built": Pointed(
        ("sequence: sequence 2;", "head: 1;", "position: 3;"),
        "sequence == 'sequence 2' and head == 1 and position == 3",
        *("weight", ".4f"),
    ),
    "witness": Pointed(
        ("dimension: 7;", "input: second;"), "dimension == 7 and input == 'second'", "value", ".6g"
    ),
    "inspection": Pointed(
        ("layer: 1;", "query–key dimensions kept: 4;"),
        "layer == 1 and size == 4 and length == 16",
        *("change", ".2%"),
        saved="heads-change_by_size",
    ),
    "evidence": Pointed(
        ("heads: 4;", "length, tokens: 8;", "smallest NMSE"),
        *("heads == 4 and length == 8", "error_min", ".2e"),
        saved="sample-drop",
    ),
    "comparison": Pointed(
        ("attention heads h: 1;", "kind: root mean square;"),
        "heads == 1 and group == 'trained' and kind == 'root mean square'",
        *("relative", ".3g"),
    ),
    "trials": Pointed(("trial: 7;",), "trial == 7", "worst_found", ".3g"),
    "frontier": Pointed(
        ("curve: one wide head;", "error: 0.05;", "task: three"),
        "curve == 'one wide head' and error == 0.05 and task.str.startswith('three')",
        *("params", ","),
    ),
    "phase-map": Pointed(
        ("heads: 3;", "length: 512;"), "heads == 3 and length == 512", "exponent", ".4g"
    ),
}
SWITCHED = (
    "study",
    "inspection",
    "compression",
    "finding",
    "witness",
    "comparison",
    "trials",
    "evidence",
)


@pytest.mark.parametrize("kind", sorted({*POINTED_AT, *SWITCHED}))
def test_a_mark_tells_its_number_and_a_legend_switches_lines(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    with opened(browser, pages[kind]) as tab:
        if kind in POINTED_AT:
            _tells(tab, POINTED_AT[kind])
        for link in tab.locator(".save a[download$=csv]").all():
            saved = unquote((link.get_attribute("href") or "").partition(",")[2])
            assert saved.count("\n") > 1  # a line of names, and one a mark
        buttons = tab.locator(".legend button").count()
        assert (buttons > 0) == (kind in SWITCHED)
        if buttons:
            _switches(tab)


def _tells(tab: Any, mark: Pointed) -> None:
    if mark.saved:
        link = tab.locator(f".save a[download='{mark.saved}.csv']")
        text = unquote((link.get_attribute("href") or "").partition(",")[2])
    else:
        text = json.loads(tab.locator("#data").text_content())
    data = pd.read_csv(StringIO(text))
    least = data.query(mark.rows)[mark.column].min()
    said = [f"{text};" for text in tab.evaluate(LABELS)]
    place = next(i for i, text in enumerate(said) if all(word in text for word in mark.words))
    tab.evaluate_handle(f"{MARKS}[{place}]").as_element().hover(force=True)
    told = tab.locator("#vg-tooltip-element, .said:not([hidden])").inner_text().replace("−", "-")
    wanted = f"{least:{mark.number}}".replace("e-0", "e-").replace("%", "\u00a0%")
    assert wanted in told
    assert "null" not in told


def _switches(tab: Any) -> None:
    before = tab.evaluate(SEEN)
    named = tab.locator(".legend button").nth(0)
    named.hover()  # its line alone, as long as one points at it
    tab.wait_for_function(f"{SEEN} < {before}")
    tab.locator("h1").hover()
    tab.wait_for_function(f"{SEEN} == {before}")
    named.click()
    tab.locator("h1").hover()
    tab.wait_for_function(f"{SEEN} < {before}")
    named.click()
    tab.locator("h1").hover()
    tab.wait_for_function(f"{SEEN} == {before}")
