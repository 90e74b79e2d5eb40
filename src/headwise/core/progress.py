"""How long work reports that it moves: the finished fraction, and what is being done."""

from collections.abc import Callable

OnProgress = Callable[[float, str], None]
"""Called with the finished fraction, 0 to 1, and what is being done now, in a few words."""


def quiet(fraction: float, doing: str) -> None:
    """Nobody listens."""


def part_of(whole: OnProgress, first: float, last: float, doing: str = "") -> OnProgress:
    """Progress of a part of some work, told to the whole: 0 becomes `first`, 1 becomes `last`.

    `doing` says what the part is, where the part itself does not.
    """

    def report(fraction: float, what: str = "") -> None:
        whole(first + fraction * (last - first), what or doing)

    return report
