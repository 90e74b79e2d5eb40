"""Pictures of a page of every kind, by day, at night and on paper, for a person to look at.

make screenshots, or PYTHONPATH=tests python tests/browser/screenshots.py FOLDER
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from page_samples import CHROMIUM, write_pages

WIDTHS = (390, 768, 1280, 1920)


def take(folder: Path) -> None:
    """Write the pages and their pictures into the folder."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        for name, path in write_pages(folder).items():
            tab = chromium.new_page()
            tab.set_default_timeout(180_000)  # a busy machine is slow, not wrong
            tab.goto(f"file://{path}")
            tab.wait_for_function("document.documentElement.dataset.drawn === 'yes'")
            for scheme in ("light", "dark"):
                tab.emulate_media(color_scheme=scheme)
                for width in WIDTHS:
                    tab.set_viewport_size({"width": width, "height": 900})
                    tab.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)
            tab.emulate_media(color_scheme="light")
            tab.pdf(path=folder / f"{name}.pdf", format="A4")
            tab.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    take(target)
