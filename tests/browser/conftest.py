"""A real browser: Debian's chromium, driven by Playwright's Python package.

    apt-get install chromium && pip install 'headwise[browser]'

Where either is missing, the tests in this folder are skipped, and say so.
"""

import json
import os
from collections.abc import Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest

from page_samples import CHROMIUM, write_pages

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
    """A page of every kind, by its name: made once, whichever process asks first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pages"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        listed = folder / "pages.json"
        if not listed.exists():
            made = {name: str(path) for name, path in write_pages(folder).items()}
            listed.write_text(json.dumps(made))
    return {name: Path(path) for name, path in json.loads(listed.read_text()).items()}
