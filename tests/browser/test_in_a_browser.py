"""Every kind of page, looked at with a browser: nothing is loaded, nothing overflows, all reads."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tabs import A4, DRAWN, KINDS, WIDTHS, opened

from headwise.theory.head_count import lower_bound_exponent
from headwise.theory.rank import error_lower_bound, heads_needed

SORTED = """[...document.querySelectorAll("th button")].filter(button => {
    const table = button.closest("table"), column = button.parentElement.cellIndex;
    button.click();
    const texts = [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
    const plain = texts.map(text => text.replace(/,/g, "").replace("−", "-"));
    if (!plain.every(text => /^-?[0-9.]+(e[+-]?[0-9]+)?$/.test(text))) return false;
    return plain.some((text, i) => i && Number(plain[i - 1]) > Number(text));
}).map(button => button.textContent)"""
LEADS_NOWHERE = """[...document.querySelectorAll("a[href^='#']")].map(each => each.hash).filter(
    hash => !document.getElementById(decodeURIComponent(hash.slice(1))))"""
UNADDRESSED = """[...document.querySelectorAll("h2, h3")].filter(
    each => !each.closest("#pinned, .card") && !each.querySelector(".anchor")
    ).map(each => each.textContent)"""
CUT = """[...document.querySelectorAll("main *")].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest("svg")
    ).map(each => each.outerHTML.slice(0, 120))"""  # what is wider than the paper is cut there
BROKEN_HEADINGS = """[...document.querySelectorAll("th")].filter(each =>
    each.scrollWidth > each.clientWidth + 1 || getComputedStyle(each).overflowWrap === "anywhere"
    ).map(each => each.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_every_width_and_is_accessible(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with opened(browser, pages[kind]) as tab:
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, width
        assert tab.evaluate("window.broken") is None
        found = axe.run(tab).response["violations"]
        serious = [each["id"] for each in found if each["impact"] in ("serious", "critical")]
        assert serious == [], [each["nodes"][0]["html"][:200] for each in found]
        assert tab.evaluate(LEADS_NOWHERE) == []
        assert tab.evaluate(UNADDRESSED) == []
        assert tab.evaluate(SORTED) == []  # columns of numbers that a click leaves unsorted
        if tab.locator("#download").count():
            with tab.expect_download() as started:
                tab.locator("#download").click()
            held = "study/runs.csv" if kind == "study" else f"{kind}.csv"
            held_by_the_result = (pages["index"].parent / held).read_text()
            assert Path(started.value.path()).read_text() == held_by_the_result
            assert held_by_the_result.count("\n") > 1
        day = tab.screenshot()
        tab.emulate_media(color_scheme="dark")
        assert tab.screenshot() != day
        found = axe.run(tab).response["violations"]
        serious = [each["id"] for each in found if each["impact"] in ("serious", "critical")]
        assert serious == [], [each["nodes"][0]["html"][:200] for each in found]
        tab.emulate_media(media="print")
        tab.set_viewport_size(A4)
        tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert tab.evaluate(CUT) == []
        assert tab.evaluate(BROKEN_HEADINGS) == []


def test_figures_are_there_without_javascript(browser: Any, pages: dict[str, Path]) -> None:
    for kind in DRAWN:
        with opened(browser, pages[kind], java_script_enabled=False) as tab:
            assert tab.locator(".chart svg .mark-symbol, .chart svg .mark-rect").count() > 0, kind
    with opened(browser, pages["inspection"], java_script_enabled=False) as tab:
        assert tab.locator(".grid button").count() == 12
        assert tab.locator("#L1H2").inner_text() == "1"


def test_a_table_sorts_and_filters(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["study"]) as tab:
        tab.locator("#table-1 summary").click()
        head = tab.locator("#table-1 th button").nth(0)
        head.click()
        head.click()
        first = tab.locator("#table-1 tbody tr").nth(0).locator("td").nth(0)
        assert first.inner_text() == "4"
        tab.locator("#table-1 input").fill("stuck-nowhere")
        assert tab.locator("#table-1 tbody tr:visible").count() == 0


@pytest.mark.parametrize(("kind", "files"), [("study", ("svg", "csv")), ("evidence", ("csv",))])
def test_a_figure_saves_under_its_studys_name(
    browser: Any, pages: dict[str, Path], kind: str, files: tuple[str, ...]
) -> None:
    with opened(browser, pages[kind]) as tab:
        links = tab.locator(".save a").all()
        names = [link.get_attribute("download") for link in links]
        assert names == [f"sample-drop.{each}" for each in files]
        for link, beside in zip(links, names, strict=True):
            with tab.expect_download() as started:
                link.click()
            saved = Path(started.value.path()).read_bytes()
            assert saved == next(pages["study"].parent.rglob(beside)).read_bytes()


def test_a_head_tells_the_number_of_the_table(browser: Any, pages: dict[str, Path]) -> None:
    heads = pd.read_csv(pages["inspection"].with_suffix(".csv"))
    with opened(browser, pages["inspection"]) as tab:
        for measure in ("importance", "size_at_1pct"):
            tab.locator("#measure").select_option(measure)
            for row in heads.to_dict("records"):
                place = f"#L{row['layer']}H{row['head']}"
                told = tab.locator(place).get_attribute("title") or ""
                assert float(told.rpartition(": ")[2]) == pytest.approx(row[measure], rel=0.05)
        tab.locator("#L2H3").click()
        said = tab.locator("#pinned dd").all_inner_texts()
        row = heads.query("layer == 2 and head == 3").iloc[0]
        names = ("importance", "size_at_1pct", "similarity")
        assert said == [f"{row[name]:.4g}" for name in names]
        last = tab.locator("#table-1 tbody tr").last.locator("td").all_text_contents()
        assert {*said} <= {*last}


def test_an_address_opens_a_head_and_its_twin(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["inspection"], "#L1H2") as tab:
        assert tab.locator("#pinned h3").inner_text() == "Layer 1, head 2"
        assert tab.locator("#pinned .curve circle").count() == 3
        assert tab.locator("#pinned .small-figure").count() == 3  # spectrum and reach, too
        tab.locator("#pinned a").click()  # the page hears of the new address a little later
        tab.locator("#pinned h3", has_text="Layer 1, head 3").wait_for()
        tab.locator("#measure").select_option("size_at_1pct")
        assert tab.locator("#L1H2").inner_text() == "10"


def test_a_head_of_a_large_map_is_seen_whole_and_its_numbers_stay_apart(
    browser: Any, pages: dict[str, Path]
) -> None:
    box = "each => { const {top, bottom, left, right} = each.getBoundingClientRect(); return "
    with opened(browser, pages["large map"], "#L20H20") as tab:
        top, left = tab.locator("#L20H20").evaluate(f"{box}[top, left]; }}")
        header = tab.locator(".grid thead th").nth(20).evaluate(f"{box}[bottom, right]; }}")
        row = tab.locator(".grid tbody th").nth(20).evaluate(f"{box}[bottom, right]; }}")
        assert header[0] <= top  # it stays where it is while the rows move under it
        assert row[1] <= left
        numbers = tab.locator("#pinned .curve text[text-anchor=middle]")
        ends = [numbers.nth(i).evaluate(f"{box}[left, right]; }}") for i in range(numbers.count())]
        assert len(ends) >= 4
        assert all(a[1] < b[0] for a, b in pairwise(ends)), ends


def test_the_calculator_computes_what_the_theory_does(browser: Any, pages: dict[str, Path]) -> None:
    rng = np.random.default_rng(0)
    points = [
        [int(h), int(d), int(t), int(n), 0.25]
        for h, d, t, n in zip(
            rng.integers(1, 9, 1000),
            rng.integers(1, 9, 1000),
            rng.integers(8, 4096, 1000),
            rng.integers(1, 65, 1000),
            strict=True,
        )
    ]
    with opened(browser, pages["calculator"]) as tab:
        seen = tab.evaluate("points => points.map(p => lowerBound(...p))", points)
        answer = tab.locator("#answer").inner_text()
    for point, each in zip(points, seen, strict=True):
        bound = lower_bound_exponent(*point)
        assert each["verdict"] == str(bound.verdict), point
        assert (each["value"] is None) == (bound.value is None), point
        assert (each["value"] or 0.0) == pytest.approx(bound.value or 0.0, rel=1e-9), point
    assert "3 heads for 4 features" in answer


def test_the_calculator_bounds_low_rank_as_the_theory_does(
    browser: Any, pages: dict[str, Path]
) -> None:
    rng = np.random.default_rng(1)
    dims = rng.integers(2, 129, 1000)
    ranks = [int(rng.integers(1, dim + 1)) for dim in dims]
    heads = 2 ** rng.integers(0, 17, 1000)
    points = [[int(d), r, int(h)] for d, r, h in zip(dims, ranks, heads, strict=True)]
    with opened(browser, pages["calculator"]) as tab:
        seen = tab.evaluate("points => points.map(p => rankBound(...p))", points)
        needed = tab.evaluate("headsNeeded(32, 4, 0.15)")
        tab.locator("#slider-rank").fill("2")
        assert "8 heads of rank 2" in tab.locator("#rank-answer").inner_text()
    for point, each in zip(points, seen, strict=True):
        bound = error_lower_bound(*point)
        assert (each["verdict"] == "not applicable") == (point[0] == point[1]), point
        assert (each["value"] or 0.0) == pytest.approx(bound.value or 0.0, rel=1e-9, abs=1e-9), (
            point
        )
    assert needed == heads_needed(32, 4, 0.15).value


def test_a_token_shows_where_it_looks(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["inspection"], "#L1H2") as tab:
        tokens = tab.locator(".tokens button")
        assert tokens.count() == 6
        assert tokens.nth(1).inner_text() == "<script>window.broken = 1</script>"
        tokens.nth(4).hover()
        said = tab.locator(".tokens + p").inner_text()
        assert said == "“upon” attends most to “once”: 100 %."


def test_a_slider_goes_along_the_sizes(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["compression"]) as tab:
        says = tab.locator("#size-says")
        assert says.inner_text().startswith("75 % kept: damage 0.100 [0.0500, 0.200] measured")
        tab.locator("#size").fill("1")
        assert says.inner_text() == "60 % kept: damage 0.167 predicted, not measured, nats/token."
        assert tab.locator("#size-bars .small-figure").count() == 4
        assert tab.locator("table.bars tbody tr").count() == 5
        assert "upon a time" in tab.locator(".texts").inner_text()


def test_a_live_page_renews_itself(browser: Any, pages: dict[str, Path]) -> None:
    path = pages["live"]
    with opened(browser, path) as tab:
        assert "6/24 runs, 12 steps/s, time left 0:01:00" in tab.locator("#live").inner_text()
        tab.set_viewport_size({"width": WIDTHS[0], "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= WIDTHS[0]
        path.write_text(path.read_text().replace("6/24 runs", "18/24 runs"))
        tab.wait_for_function("document.querySelector('#live')?.innerText.includes('18/24')")


def test_a_page_prints_whole_on_a4(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["study"]) as tab:
        tab.emulate_media(media="print")
        tab.set_viewport_size(A4)
        tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert tab.locator("details:not([open])").count() == 0
        lines = """rows => rows.map(each =>
            each.offsetHeight / parseFloat(getComputedStyle(each).fontSize))"""
        assert max(tab.locator("details tbody tr").evaluate_all(lines)) < 3  # no number is broken
        assert tab.evaluate("[...views.values()][0].width()") <= 640  # words keep their size
        swatch = tab.locator(".legend .swatch").nth(0)  # browsers print no grounds unless asked
        assert swatch.evaluate("each => getComputedStyle(each).printColorAdjust") == "exact"
        assert tab.pdf(format="A4").startswith(b"%PDF")
