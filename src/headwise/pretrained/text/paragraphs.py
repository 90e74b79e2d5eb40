"""Where a text's paragraphs end, however its lines are broken.

A line may be a paragraph, a sentence, or as much of one as went into a line: judged by the last, an
encoder is judged by pieces of sentences. A line was broken by hand if the next one's first word had
not fitted into the text's width any more. Short lines between blank ones (verse, speeches, code)
belong together, too.
"""

import re
from itertools import groupby, pairwise
from math import inf

import numpy as np

_WIDEST = 100  # letters: wider lines are not broken by hand
_LONGEST = 2048  # letters: more in short lines is a list
_WORD = 25  # letters: what is longer is no word, and may stand on a line of its own
_MARKS = " \t>|*#/-•"  # before a line: quoted, listed, commented out
_USUAL = 95  # per cent of the lines: a few may be wider than they should
_LEAST = 1 / 4  # of the lines: in a list some end there by chance


def paragraphs(text: str) -> list[str]:
    """The text's lines, together where they were one paragraph; blank ones are left out."""
    blocks = [list(lines) for blank, lines in groupby(text.splitlines(), _blank) if not blank]
    width = _width(blocks)
    found: list[str] = []
    for lines in blocks:
        whole = "\n".join(lines)
        if len(blocks) > 1 and max(map(len, lines)) <= _WIDEST and len(whole) <= _LONGEST:
            found.append(whole)
        else:
            found += lines if width is None else _rejoined(lines, width)
    return found


def _blank(line: str) -> bool:
    """Without a letter or a number: empty, or a rule, or what marks a quotation."""
    return re.search(r"\w", line) is None


def _width(blocks: list[list[str]]) -> float | None:
    """How wide lines are that were broken by hand; None if they were not."""
    sizes = [len(line) for lines in blocks for line in lines]
    width = float(np.percentile(sizes, _USUAL)) if sizes else inf
    both = [neighbours for lines in blocks for neighbours in pairwise(lines)]
    broken = sum(_broken(*each, width) and _goes_on(each[1]) for each in both)
    return width if width <= _WIDEST and broken >= _LEAST * len(sizes) else None


def _rejoined(lines: list[str], width: float) -> list[str]:
    found = lines[:1]
    for line, following in pairwise(lines):
        whole = f"{found[-1]}\n{following}"
        if _broken(line, following, width) and len(whole) <= _LONGEST:
            found[-1] = whole
        else:
            found.append(following)
    return found


def _goes_on(line: str) -> bool:
    """In the middle of a sentence: lines of a log may be equally wide, and begin anew each."""
    first = line.lstrip(_MARKS)[0]
    return first.isalpha() and not first.isupper()


def _broken(line: str, following: str, width: float) -> bool:
    """Whether the following line's first word, without what marks a quotation, had not fitted."""
    first = following.lstrip(_MARKS).split()[0]
    words = " " in line.strip(_MARKS) and len(first) <= _WORD
    return words and len(line) + 1 + len(first) > width
