"""Text for a terminal of any width: wrapped sentences, and tables that never break a row."""

import shutil
import textwrap
from collections.abc import Sequence

_WIDEST = 92  # that a person reads well
_LEAST = 30
_GAP = "  "


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines no wider than the terminal, where there is one, and than a person reads well."""
    return textwrap.wrap(
        text,
        max(_LEAST, min(_WIDEST, _columns())),
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
    )


def in_columns(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table, aligned to the right; what is wider than the terminal goes on below.

    The first column, which says what a row is, stands again beside each part.
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines: list[str] = []
    first = 1
    while first < len(widths):
        last, used = first, widths[0]
        while last < len(widths) and (
            last == first or used + len(_GAP) + widths[last] <= _columns()
        ):
            used += len(_GAP) + widths[last]
            last += 1
        shown = [0, *range(first, last)]
        lines += [_GAP.join(row[k].rjust(widths[k]) for k in shown) for row in cells]
        first = last
    return lines


def _columns() -> int:
    return shutil.get_terminal_size((_WIDEST, 24)).columns
