"""A real browser: Debian's chromium, driven by Playwright's Python package.

    apt-get install chromium && pip install 'headwise[browser]'

Where either is missing, the tests in this folder are skipped, and say so.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwise.report.build import write_report
from headwise.report.calculator import calculator_page
from headwise.report.pages.index import IndexEntry, index_page
from headwise.report.pages.template import render_page
from headwise.report.result_page import page
from page_samples import sample_result, samples

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOW = "browser tests need: apt-get install chromium && pip install 'headwise[browser]'"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    if CHROMIUM is None:
        pytest.skip(HOW)
    driver = pytest.importorskip("playwright.sync_api", reason=HOW)
    with driver.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind, by its name."""
    return write_pages(tmp_path_factory.mktemp("pages"))


def write_pages(folder: Path) -> dict[str, Path]:
    """Make a small store and write a page of every kind; gives their paths."""
    result = sample_result(folder)
    found = {"study": write_report(result, folder / "study")}
    entry = IndexEntry.of(result, "study/report.html")
    texts = {name: page(each) for name, each in samples().items()}
    texts["calculator"] = render_page(calculator_page())
    texts["index"] = render_page(index_page([entry]))
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text)
    return found
