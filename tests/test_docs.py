"""The documentation: every page is listed, every link leads somewhere, the examples are true."""

import doctest
import re
from pathlib import Path

import pytest

from house import ROOMS, ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
NAV = re.findall(r"^ +- (?:[^:\n]+: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
TEXTS = [
    *(DOCS / page for page in PAGES),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "benchmarks" / "README.md",
]


def links(path: Path) -> list[str]:
    """Relative links and pictures of a page, code aside."""
    prose = re.sub(r"^(```|    ).*?(\n```|$)", "", path.read_text(), flags=re.M)
    return re.findall(r"\]\((?!https?:)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")) for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading.strip().lower()) for heading in plain}


def test_every_page_is_in_the_navigation() -> None:
    assert sorted(NAV) == PAGES


def test_every_room_has_a_reference_page() -> None:
    for room in ROOMS:
        assert (DOCS / "api" / f"{room}.md").exists()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name}: {link}"
        assert DOCS in target.parents or DOCS not in path.parents, f"{link} leads out of the site"
        assert not anchor or anchor in anchors(target), f"{path.name}: no heading for {link}"


def test_scripts_that_are_named_exist() -> None:
    named = {
        (text, script)
        for text in [*TEXTS, ROOT / "Makefile", *ROOT.glob("[bst]*/**/*.py")]
        for script in re.findall(r"\bbenchmarks/[\w/]+\.py\b", text.read_text("utf-8"))
    }
    assert len({script for _, script in named}) >= 20
    lost = [(text, script) for text, script in named if not (ROOT / script).exists()]
    assert lost == []


@pytest.mark.parametrize("page", ["index.md", "head-count.md"])
def test_the_examples_on_the_page_are_true(page: str) -> None:
    outcome = doctest.testfile(str(DOCS / page), module_relative=False)
    assert outcome.attempted >= 3
    assert outcome.failed == 0


def test_included_files_exist() -> None:
    for page in PAGES:
        for name in re.findall(r'^--8<-- "(.+)"$', (DOCS / page).read_text(), re.M):
            assert (ROOT / name).is_file()
            assert all("#" in link for link in links(ROOT / name)) or links(ROOT / name) == [], (
                f"{name} is a page of the site, too: link by full address"
            )


def test_the_version_is_the_same_everywhere() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert f"version: {version[1]}\n" in (ROOT / "CITATION.cff").read_text()
    assert version[1] in (ROOT / "CHANGELOG.md").read_text()
