"""Text for a terminal of any width: wrapped sentences, and tables that never break a row."""

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_WIDEST = 92  # that a person reads well
_LEAST = 30
_GAP = "  "


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines no wider than the terminal, where there is one, and than a person reads well."""
    return _wrap(text, max(_LEAST, min(_WIDEST, _columns())), indent, " " * len(indent))


def in_columns(cells: Sequence[Sequence[str]], keys: int = 1) -> list[str]:
    """A table, aligned to the right; what is wider than the terminal goes on below.

    The first `keys` columns, which say what a row is, stand again beside each part. Where they
    leave no room for another beside them, a row is a paragraph.
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    keys = min(keys, len(widths))
    beside = sum(widths[:keys]) + len(_GAP) * keys + max(widths[keys:], default=0)
    if beside > _columns():
        return [line for row in cells[1:] for line in _keyed_paragraph(cells[0], row, keys)]
    lines: list[str] = []
    first = keys
    while first < len(widths) or not lines:
        last, used = first, sum(widths[:keys]) + len(_GAP) * (keys - 1)
        while last < len(widths) and (
            last == first or used + len(_GAP) + widths[last] <= _columns()
        ):
            used += len(_GAP) + widths[last]
            last += 1
        shown = [*range(keys), *range(first, last)]
        lines += [_GAP.join(row[k].rjust(widths[k]) for k in shown) for row in cells]
        first = last
    return lines


def fitted(table: "pd.DataFrame", keys: int = 1) -> str:
    """A data frame as text: whole where it fits or nobody's terminal limits it, else in parts."""
    whole: str = table.to_string(index=False)
    if max(map(len, whole.splitlines()), default=0) <= _limit():
        return whole
    cells = table.astype(str).to_numpy().tolist()
    return "\n".join(in_columns([list(map(str, table.columns)), *cells], keys))


def listed(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of words: cells wrap between words; where no word would fit, a paragraph a row."""
    cells = [list(head), *map(list, rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [
        max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns
    ]
    room = _columns() - len(_GAP) * (len(widths) - 1)
    if sum(least) > room:
        return [line for row in rows for line in _paragraph(head, row)]
    while sum(widths) > room:  # the widest that can still give way does
        widest = max(
            (k for k in range(len(widths)) if widths[k] > least[k]), key=lambda k: widths[k]
        )
        widths[widest] -= 1
    return [line for row in cells for line in _wrapped_row(row, widths)]


def fit(text: object) -> str:
    """The text of a result with no line wider than the terminal: sentences wrap between words.

    Where there is no terminal, as in a pipe, a sentence stays a line.
    """
    lines = []
    for line in str(text).splitlines():
        start = line[: len(line) - len(line.lstrip(" -•"))]
        shorter = _wrap(line[len(start) :], _limit(), start, " " * len(start))
        lines += shorter if len(line) > _limit() else [line]
    return "\n".join(lines)


def _paragraph(head: Sequence[str], row: Sequence[str]) -> list[str]:
    """The row's first cell, and the others below it, each with its title."""
    said = [
        _wrap(f"{title}: {cell}", _columns(), "  ", "    ")
        for title, cell in zip(head[1:], row[1:], strict=True)
        if cell
    ]
    return [row[0], *(line for lines in said for line in lines)]


def _keyed_paragraph(head: Sequence[str], row: Sequence[str], keys: int) -> list[str]:
    """What the row is, then its numbers below, each with its title."""
    pairs = zip(head, row, strict=True)
    said = [f"{title}: {cell}" if title else cell for title, cell in pairs]
    return [
        *_wrap("; ".join(said[:keys]), _columns()),
        *_wrap("; ".join(said[keys:]), _columns(), "  ", "    "),
    ]


def _wrapped_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    parts = [_wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, parts))
    filled = [part + [""] * (height - len(part)) for part in parts]
    return [
        _GAP.join(part[k].ljust(width) for part, width in zip(filled, widths, strict=True)).rstrip()
        for k in range(height)
    ]


def _wrap(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        max(1, width),
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns() -> int:
    return shutil.get_terminal_size((_WIDEST, 24)).columns


def _limit() -> int:
    """The terminal's width; none where there is no terminal."""
    return shutil.get_terminal_size((1 << 30, 24)).columns
