"""Pages opened in the browser, and the sizes at which they are looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KINDS = (
    *("study", "inspection", "compression", "finding", "plan", "index", "calculator"),
    *("built", "witness", "comparison", "trials", "frontier", "phase-map", "evidence"),
)
DRAWN = tuple(kind for kind in KINDS if kind not in ("calculator", "inspection"))
A4 = {"width": 688, "height": 970}  # without its margins
WIDTHS = (390, 768, 1280, 1920)


@contextmanager
def opened(browser: Any, path: Path, hash: str = "", **options: Any) -> Iterator[Any]:
    """The page when its figures are drawn; fails on any complaint or request."""
    tab = browser.new_page(**options)
    tab.set_default_timeout(180_000)  # a busy machine is slow, not wrong
    heard: list[str] = []
    tab.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: heard.append(str(error)))
    tab.on("request", lambda request: heard.append(request.url) if _leaves(request.url) else None)
    tab.goto(f"file://{path}{hash}", timeout=120_000)  # a busy machine takes its time
    if options.get("java_script_enabled", True):
        tab.wait_for_function("document.documentElement.dataset.drawn === 'yes'")
    yield tab
    assert heard == []
    tab.close()


def _leaves(address: str) -> bool:
    return not address.startswith(("file:", "data:", "blob:"))
