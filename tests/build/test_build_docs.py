"""The examples of docs/build.md run and print what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "build.md"


def test_the_examples_on_the_page_are_true() -> None:
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 20
    assert outcome.failed == 0
