"""docs/variants.md: its examples are true."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "variants.md"


def test_the_examples_on_the_page_are_true() -> None:
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 15
    assert outcome.failed == 0
